/** The transport to a server that runs as a process on this machine, in the sandbox in force. */
import { setImmediate } from 'node:timers/promises'
import type { JSONRPCMessage, RequestId, Transport } from '@modelcontextprotocol/client'
import { AppError, type Clock, errorText, oneLine, type ProcessPipes, type Spawn, type SpawnRequest } from '@sluice/sdk'
import { linesOf, MESSAGE_BYTES_MAX } from './lines.ts'
import { readingPace, readingUnits } from './pace.ts'

/** After this many messages in a row, other work of the daemon gets its turn. */
const MESSAGES_IN_A_ROW = 50
/** The time in which a program that closed its output must end. */
const END_MS = 1000
const STDERR_BYTES_MAX = 8192
const STDERR_SHOWN_CHARS = 500
const LINE_SHOWN_CHARS = 100
/** The characters that may wait until the program reads them. */
const UNREAD_CHARS_MAX = 4 * MESSAGE_BYTES_MAX

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
  /** The requests that have no answer yet. */
  readonly #unanswered = new Set<RequestId>()
  #unreadChars = 0
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
    const line = `${JSON.stringify(message)}\n`
    this.#unreadChars += line.length
    if (this.#unreadChars > UNREAD_CHARS_MAX) this.#stop('the program does not read its input')
    if ('method' in message && 'id' in message) this.#unanswered.add(message.id)
    if ('method' in message && message.method === CANCELLED) this.#unanswered.delete(message.params?.requestId as RequestId)
    await this.#pipes.write(line)
    this.#unreadChars -= line.length
  }

  /** Ends the process with its group. Idempotent. */
  async close(): Promise<void> {
    this.#stopped.abort()
    await this.#ended
  }

  /** Lines that are not messages are reported and left out: some programs log to standard output. */
  async #read({ output }: ProcessPipes): Promise<void> {
    const { signal } = this.#stopped
    const pace = readingPace(this.#clock)
    let count = 0
    try {
      for await (const line of linesOf(output)) {
        if (this.#take(line)) continue
        const delayMs = pace.delayMs(readingUnits(line.length))
        if (delayMs > 0) await this.#clock.sleep(delayMs, signal)
        else if (++count % MESSAGES_IN_A_ROW === 0) await setImmediate()
        if (signal.aborted) return
      }
      await this.#clock.sleep(END_MS, signal)
      this.#stopped.abort()
    } catch (error) {
      if (!signal.aborted) this.#stop(errorText(error))
    }
  }

  /** Returns true for the answer to a request, which the server could not send on its own. */
  #take(line: string): boolean {
    const message = messageIn(line)
    if (message === undefined) {
      const shown = oneLine(line, LINE_SHOWN_CHARS)
      if (shown !== '') this.onerror?.(new Error(`the output has a line that is not a message: ${shown}`))
      return false
    }
    if ('method' in message && UNUSED.includes(message.method)) return false
    const isAnswer = !('method' in message) && message.id !== undefined && this.#unanswered.delete(message.id)
    this.onmessage?.(message)
    return isAnswer
  }

  #stop(reason: string): void {
    this.endReason ??= reason
    this.#stopped.abort()
  }
}

const CANCELLED = 'notifications/cancelled'
/** Notifications that the client makes no use of, and that some servers send in great numbers. */
const UNUSED = ['notifications/message', 'notifications/progress']

function messageIn(line: string): JSONRPCMessage | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const message = JSON.parse(line)
    return message.jsonrpc === '2.0' ? message : undefined
  } catch {
    return undefined
  }
}
