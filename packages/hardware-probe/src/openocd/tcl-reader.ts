/** Reads a chip through the TCL port of a running OpenOCD. Commands and answers end with 0x1a. The chip is not halted. */
import type { Socket } from 'node:net'
import { ByteBuffer } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import type { Block, ChipReader, Reading } from '../chip-reader.ts'
import { withServer } from '../server-connection.ts'
import { parseReadings, readExpression } from './read-script.ts'

const END = 0x1a
const ANSWER_BYTES_MAX = 65_536

export class OpenOcdTclReader implements ChipReader {
  readonly source: string
  readonly #host: Host
  readonly #server: string
  readonly #timeoutMs: number

  /** `server` is `host:port`. */
  constructor(host: Host, server: string, timeoutMs: number) {
    this.source = `OpenOCD at ${server}`
    this.#host = host
    this.#server = server
    this.#timeoutMs = timeoutMs
  }

  read(blocks: readonly Block[], signal: AbortSignal): Promise<readonly Reading[]> {
    const limits = { clock: this.#host.clock, timeoutMs: this.#timeoutMs, signal }
    return withServer(this.source, this.#server, limits, async (socket, signal) => {
      try {
        const answers: string[] = []
        for (const [index, block] of blocks.entries()) answers.push(await this.#evaluate(socket, readExpression(block, index), signal))
        return parseReadings(answers.join('\n'), blocks)
      } finally {
        socket.destroy()
      }
    })
  }

  /** Runs one command. Throws `upstream` for an endless answer and `unavailable` when the server closes the connection. */
  async #evaluate(socket: Socket, command: string, signal: AbortSignal): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const answer = new ByteBuffer()
    const onData = (piece: Uint8Array): void => {
      const end = piece.indexOf(END)
      answer.append(end === -1 ? piece : piece.subarray(0, end))
      if (end !== -1) resolve(answer.bytes().toString('latin1'))
      else if (answer.length > ANSWER_BYTES_MAX) reject(new AppError('upstream', `${this.source} sends an answer without an end`))
    }
    const onClose = (): void => reject(new AppError('unavailable', `${this.source} closed the connection`))
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
}
