/** Reads a chip through a GDB server: halts it, reads, and lets it run on. */
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import type { Block, ChipReader, Reading } from '../chip-reader.ts'
import { parseEndpoint } from '../config.ts'
import { openSocket } from '../open-socket.ts'
import { withinTime } from '../within-time.ts'
import { unescaped } from './frames.ts'
import { createGdbLink, type GdbLink } from './link.ts'

/** After which a target that reports nothing is taken to run. */
const REPORT_MS_MAX = 2000
const LEAVE_MS_MAX = 1000
const DESCRIPTION_BYTES = 2048
/** Of a server that does not say. */
const PACKET_CHARS_DEFAULT = 400
const READ_BYTES_MAX = 1024

/** A server that halts may say so before it answers. */
const NO_STOP_REPLY = /^(?![STWX][0-9a-fA-F]{2})/
const DATA = /^(?:(?:[0-9a-fA-F]{2})+|E[0-9a-fA-F]{2}|E\.[\s\S]*)$/
const REFUSED = /^E(?:..$|\.)/
const XFER = /^(?:[lm]|E[0-9a-fA-F]{2}$|$)/
/** It has ended, or stands where a debugger stopped it: no connection of ours halted it. */
const STOPPED_BEFORE = /^[WX]|^T..(?:.*;)?(?:swbreak|hwbreak|r?watch|awatch):/

export interface GdbReaderOptions {
  /** `host:port`. */
  readonly server: string
  readonly timeoutMs: number
  readonly clock: Clock
  readonly log: Logger
}

export function createGdbReader({ server, timeoutMs, clock, log }: GdbReaderOptions): ChipReader {
  const source = `the GDB server at ${server}`
  return {
    source,
    read: (blocks, signal) =>
      withinTime({ clock, ms: timeoutMs, signal, what: source }, async (signal) => {
        const link = createGdbLink(await openSocket(parseEndpoint(server), signal), source, signal)
        try {
          return await visit(link, blocks, clock)
        } finally {
          // a server takes the next who connects once it is done with this one
          const leaving = link.run().then(() => link.end())
          await Promise.race([leaving, clock.sleep(LEAVE_MS_MAX, signal)]).catch((error: unknown) =>
            log.debug('a GDB server was left in the middle', { server, error: errorText(error) }),
          )
          link.close()
        }
      }),
  }
}

async function visit(link: GdbLink, blocks: readonly Block[], clock: Clock): Promise<Reading[]> {
  const features = (await link.ask('qSupported:swbreak+;hwbreak+', NO_STOP_REPLY)).split(';')
  if (features.includes('QStartNoAckMode+') && (await link.ask('QStartNoAckMode', /^(?:OK|E..|)$/)) === 'OK') link.withoutAcks()
  await halt(link, clock)
  if (features.includes('qXfer:features:read+')) await checkArchitecture(link)
  const packetChars = Number.parseInt(features.find((feature) => feature.startsWith('PacketSize='))?.slice(11) ?? '', 16)
  const bytesMax = Math.min(READ_BYTES_MAX, Math.max(4, (((packetChars || PACKET_CHARS_DEFAULT) - 8) >> 3) * 4))
  const readings: Reading[] = []
  for (const block of blocks) readings.push(await readBlock(link, block, bytesMax))
  return readings
}

/** Most servers halt the target for who connects; the others do when they are asked. */
async function halt(link: GdbLink, clock: Clock): Promise<void> {
  const asked = new AbortController()
  const told = await Promise.race([link.askStop('?'), clock.sleep(REPORT_MS_MAX, asked.signal)]).finally(() => asked.abort())
  if (told === undefined) await link.askStop('interrupt')
  else if (STOPPED_BEFORE.test(told)) link.keepHalted()
}

async function checkArchitecture(link: GdbLink): Promise<void> {
  const request = `qXfer:features:read:target.xml:0,${DESCRIPTION_BYTES.toString(16)}`
  const description = unescaped(await link.ask(request, XFER))
  const architecture = /<architecture>\s*([\w:.-]{1,64})/.exec(description)?.[1]
  if (architecture !== undefined && !/^arm(?!v?8-a|.*64)/i.test(architecture))
    throw new AppError('conflict', `The GDB server debugs a chip of the architecture ${architecture}, which is no Arm Cortex-M`)
}

async function readBlock(link: GdbLink, { address, length }: Block, bytesMax: number): Promise<Reading> {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; ) {
    const count = Math.min(bytesMax, length - at)
    const reply = await link.ask(`m${(address + at).toString(16)},${count.toString(16)}`, DATA)
    if (REFUSED.test(reply)) return undefined
    const part = Buffer.from(reply, 'hex')
    if (part.length > count) throw new AppError('upstream', 'The GDB server sends more memory than it was asked for')
    at += part.copy(bytes, at)
  }
  return bytes
}
