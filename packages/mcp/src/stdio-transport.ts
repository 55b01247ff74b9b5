/** The transport to a server that runs as a process on this machine, in the sandbox in force. */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { AppError, type Clock, errorText, type ProcessPipes, type Spawn, type SpawnRequest } from '@sluice/sdk'
import { linesOf } from './lines.ts'

/** A server that sends more messages than this in a second, answers excluded, is read no faster. */
const MESSAGES_PER_SECOND = 2000
const SECOND_MS = 1000
/** The time in which a program that closed its output must end. */
const END_MS = 1000
const STDERR_BYTES_MAX = 8192
const STDERR_SHOWN_CHARS = 500

export type ProcessOptions = Pick<SpawnRequest, 'file' | 'args' | 'cwd' | 'env' | 'policy'>

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  /** Why the process ended. Set before `onclose` is called. */
  endReason: string | undefined
  readonly #spawn: Spawn
  readonly #clock: Clock
  readonly #options: ProcessOptions
  readonly #stopped = new AbortController()
  #pipes: ProcessPipes | undefined
  #ended: Promise<void> | undefined

  constructor(spawn: Spawn, clock: Clock, options: ProcessOptions) {
    this.#spawn = spawn
    this.#clock = clock
    this.#options = options
  }

  /** Starts the process. Rejects as `Spawn` does. */
  async start(): Promise<void> {
    const started = Promise.withResolvers<void>()
    const running = this.#spawn({
      ...this.#options,
      timeoutMs: Number.POSITIVE_INFINITY,
      outputBytesMax: STDERR_BYTES_MAX,
      signal: this.#stopped.signal,
      onStart: (pipes) => {
        this.#pipes = pipes
        void this.#read(pipes)
        started.resolve()
      },
    })
    this.#ended = running
      .then(
        ({ exitCode, signal, stderr }) => {
          const words = stderr.trim().slice(-STDERR_SHOWN_CHARS)
          this.endReason ??= `the program ended with ${signal ?? `exit code ${exitCode}`}${words === '' ? '' : `: ${words}`}`
        },
        (error: unknown) => {
          this.endReason ??= errorText(error)
          started.reject(error)
        },
      )
      .finally(() => this.onclose?.())
    await started.promise
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#pipes || this.endReason !== undefined) throw new AppError('upstream', this.endReason ?? 'the program has not started')
    await this.#pipes.write(`${JSON.stringify(message)}\n`)
  }

  /** Ends the process with its group. Idempotent. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.#ended
  }

  /** Lines that are not messages are ignored: some programs log to standard output. */
  async #read({ output }: ProcessPipes): Promise<void> {
    let sinceMs = this.#clock.monotonicMs()
    let count = 0
    try {
      for await (const line of linesOf(output)) {
        const message = messageIn(line)
        if (message) this.onmessage?.(message)
        if (message && !('method' in message)) continue
        if (++count < MESSAGES_PER_SECOND) continue
        await this.#clock.sleep(sinceMs + SECOND_MS - this.#clock.monotonicMs(), this.#stopped.signal)
        sinceMs = this.#clock.monotonicMs()
        count = 0
      }
      await this.#clock.sleep(END_MS, this.#stopped.signal)
      this.#stopped.abort()
    } catch (error) {
      if (this.#stopped.signal.aborted) return
      this.endReason ??= errorText(error)
      this.#stopped.abort()
    }
  }
}

/** Notifications that the client makes no use of, and that some servers send in great numbers. */
const UNUSED = ['notifications/message', 'notifications/progress', 'notifications/resources/updated']

function messageIn(line: string): JSONRPCMessage | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message = JSON.parse(line)
    return message.jsonrpc === '2.0' && !UNUSED.includes(message.method) ? message : undefined
  } catch {
    return undefined
  }
}
