/** Reads a chip through a GDB server: halts the chip, reads, and lets it run on. */
import { endsWithin } from '@sluice/kit'
import { AppError, type Clock, errorText, type Host } from '@sluice/sdk'
import type { Block, ChipReader, Reading } from '../chip-reader.ts'
import { withServer } from '../server-connection.ts'
import { unescaped } from './frames.ts'
import { GdbLink } from './gdb-link.ts'

/** A target that does not report a stop within this time is running. */
const STOP_REPORT_MS_MAX = 2000
const LEAVE_MS_MAX = 1000
const DESCRIPTION_BYTES = 2048
/** The packet size of a server that does not announce one. */
const PACKET_CHARS_DEFAULT = 400
const READ_BYTES_MAX = 1024

/** Anything but a stop report, which a server that halts the target may send before its first reply. */
const NO_STOP_REPLY = /^(?![STWX][0-9a-fA-F]{2})/
const DATA = /^(?:(?:[0-9a-fA-F]{2})+|E[0-9a-fA-F]{2}|E\.[\s\S]*)$/
const REFUSED = /^E(?:..$|\.)/
const XFER = /^(?:[lm]|E[0-9a-fA-F]{2}$|$)/
/** The target has ended or is stopped at a breakpoint or watchpoint, so it was halted before this connection. */
const HALTED_BEFORE = /^[WX]|^T..(?:.*;)?(?:swbreak|hwbreak|r?watch|awatch):/

export class GdbReader implements ChipReader {
  readonly source: string
  readonly #host: Host
  readonly #server: string
  readonly #timeoutMs: number

  /** `server` is `host:port`. */
  constructor(host: Host, server: string, timeoutMs: number) {
    this.source = `the GDB server at ${server}`
    this.#host = host
    this.#server = server
    this.#timeoutMs = timeoutMs
  }

  read(blocks: readonly Block[], signal: AbortSignal): Promise<readonly Reading[]> {
    const { clock } = this.#host
    return withServer(this.source, this.#server, { clock, timeoutMs: this.#timeoutMs, signal }, async (socket, signal) => {
      const link = new GdbLink(socket, this.source, signal)
      try {
        return await readBlocks(link, blocks, clock)
      } finally {
        await this.#leave(link, signal)
      }
    })
  }

  /** Lets the chip run and waits until the server has closed the connection, because it serves the next client only after that. */
  async #leave(link: GdbLink, signal: AbortSignal): Promise<void> {
    const leaving = link.run().then(() => link.end())
    await endsWithin(leaving, LEAVE_MS_MAX, this.#host.clock, signal).catch((error: unknown) =>
      this.#host.log.debug('GDB server left without a reply', { server: this.#server, error: errorText(error) }),
    )
    link.close()
  }
}

async function readBlocks(link: GdbLink, blocks: readonly Block[], clock: Clock): Promise<Reading[]> {
  const features = (await link.request('qSupported:swbreak+;hwbreak+', NO_STOP_REPLY)).split(';')
  if (features.includes('QStartNoAckMode+') && (await link.request('QStartNoAckMode', /^(?:OK|E..|)$/)) === 'OK') link.disableAcks()
  await halt(link, clock)
  if (features.includes('qXfer:features:read+')) await checkArchitecture(link)
  const packetChars = Number.parseInt(features.find((feature) => feature.startsWith('PacketSize='))?.slice(11) ?? '', 16)
  const bytesMax = Math.min(READ_BYTES_MAX, Math.max(4, (((packetChars || PACKET_CHARS_DEFAULT) - 8) >> 3) * 4))
  const readings: Reading[] = []
  for (const block of blocks) readings.push(await readBlock(link, block, bytesMax))
  return readings
}

/** Most servers halt the target when a client connects. The others halt it on the interrupt. */
async function halt(link: GdbLink, clock: Clock): Promise<void> {
  const report = link.requestStop('?')
  if (!(await endsWithin(report, STOP_REPORT_MS_MAX, clock))) await link.requestStop('interrupt')
  else if (HALTED_BEFORE.test(await report)) link.keepHalted()
}

async function checkArchitecture(link: GdbLink): Promise<void> {
  const request = `qXfer:features:read:target.xml:0,${DESCRIPTION_BYTES.toString(16)}`
  const description = unescaped(await link.request(request, XFER))
  const architecture = /<architecture>\s*([\w:.-]{1,64})/.exec(description)?.[1]
  if (architecture !== undefined && !/^arm(?!v?8-a|.*64)/i.test(architecture))
    throw new AppError('conflict', `The GDB server debugs a chip of the architecture ${architecture}, not an Arm Cortex-M`)
}

/** Reads a block in packets of at most `bytesMax` bytes. A server may return fewer bytes than requested. */
async function readBlock(link: GdbLink, { address, length }: Block, bytesMax: number): Promise<Reading> {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; ) {
    const count = Math.min(bytesMax, length - at)
    const reply = await link.request(`m${(address + at).toString(16)},${count.toString(16)}`, DATA)
    if (REFUSED.test(reply)) return undefined
    const part = Buffer.from(reply, 'hex')
    if (part.length > count) throw new AppError('upstream', 'The GDB server sends more memory than requested')
    at += part.copy(bytes, at)
  }
  return bytes
}
