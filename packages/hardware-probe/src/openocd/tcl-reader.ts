/** Reads a chip through an OpenOCD that runs, by its TCL port: commands and answers end in 0x1a; the chip is not halted. */
import type { Socket } from 'node:net'
import { ByteBuffer } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { ChipReader } from '../chip-reader.ts'
import { parseEndpoint } from '../config.ts'
import { openSocket } from '../open-socket.ts'
import { withinTime } from '../within-time.ts'
import { parseReadings, readExpression } from './read-script.ts'

const END = 0x1a
const ANSWER_BYTES_MAX = 65_536

export interface TclReaderOptions {
  /** `host:port`. */
  readonly server: string
  readonly timeoutMs: number
  readonly clock: Clock
}

export function createTclReader({ server, timeoutMs, clock }: TclReaderOptions): ChipReader {
  const source = `OpenOCD at ${server}`
  return {
    source,
    read: (blocks, signal) =>
      withinTime({ clock, ms: timeoutMs, signal, what: source }, async (signal) => {
        const socket = await openSocket(parseEndpoint(server), signal)
        try {
          const answers: string[] = []
          for (const [index, block] of blocks.entries()) answers.push(await evaluate(socket, readExpression(block, index), source, signal))
          return parseReadings(answers.join('\n'), blocks)
        } finally {
          socket.destroy()
        }
      }),
  }
}

/** One command to its end. Throws `upstream` for an endless answer, `unavailable` when the other side leaves. */
async function evaluate(socket: Socket, command: string, source: string, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const answer = new ByteBuffer()
  const onData = (piece: Uint8Array): void => {
    const end = piece.indexOf(END)
    answer.append(end === -1 ? piece : piece.subarray(0, end))
    if (end !== -1) resolve(answer.bytes().toString('latin1'))
    else if (answer.length > ANSWER_BYTES_MAX) reject(new AppError('upstream', `${source} answers without an end`))
  }
  const onClose = (): void => reject(new AppError('unavailable', `${source} ended the connection`))
  const onAbort = (): void => reject(signal.reason)
  socket.on('data', onData).once('close', onClose)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    signal.throwIfAborted()
    socket.write(Buffer.from([...Buffer.from(command), END]))
    return await promise
  } finally {
    socket.off('data', onData).off('close', onClose)
    signal.removeEventListener('abort', onAbort)
  }
}
