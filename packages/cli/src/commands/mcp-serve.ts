/** `sluice mcp serve`: carries messages of the Model Context Protocol between standard input and output and `/mcp` of the daemon. */
import { createInterface } from 'node:readline'
import { signalScope } from '@sluice/kit'
import { AppError, ERRORS } from '@sluice/sdk'
import { type Api, textOf } from '../api/api.ts'
import { openRunning, whileStarting } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'

/** A JSON-RPC message, as far as it is read here. */
interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: {
    readonly name?: string
    readonly uri?: string
    readonly requestId?: string | number
    readonly _meta?: Readonly<Record<string, unknown>>
  }
}

const ACCEPT = 'application/json, text/event-stream'
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const PARSE_ERROR = -32_700
const SERVER_ERROR = -32_603

/** Ends when standard input ends. Requests that run then are aborted. */
export async function run(context: CliContext): Promise<number> {
  const running = await whileStarting(context.dataDir, async () => (await openRunning(context)) ?? noDaemon())
  const bridge = new Bridge(running.api, context.out.print)
  const interrupted = context.interrupted()
  const lines = createInterface({ input: context.stdin, signal: interrupted })
  try {
    for await (const line of lines) if (line.trim() !== '') bridge.take(line)
  } catch (error) {
    if (!interrupted.aborted) throw error
  } finally {
    bridge.close()
    await running.close()
  }
  return 0
}

function noDaemon(): never {
  throw new AppError('unavailable', "No daemon runs: start it with 'sluice daemon'")
}

class Bridge {
  readonly #api: Api
  readonly #print: (line: string) => void
  readonly #running = new Map<string | number, AbortController>()
  readonly #closed = new AbortController()

  constructor(api: Api, print: (line: string) => void) {
    this.#api = api
    this.#print = print
  }

  /** Sends one message on. Messages are sent side by side. */
  take(line: string): void {
    const message = parsed(line)
    if (!message) this.#fail(null, PARSE_ERROR, 'The line is not a JSON object')
    else if (message.method === 'notifications/cancelled') this.#running.get(message.params?.requestId ?? '')?.abort()
    else void this.#send(message)
  }

  close(): void {
    this.#closed.abort()
  }

  async #send(message: Message): Promise<void> {
    const cancelled = new AbortController()
    using scope = signalScope([cancelled.signal, this.#closed.signal])
    const { signal } = scope
    const { id } = message
    if (id !== undefined) this.#running.set(id, cancelled)
    try {
      const answer = await this.#api.send('POST', '/mcp', { body: message, headers: headersOf(message), signal })
      const text = await textOf(answer, 'POST')
      if (answer.status >= 400 && !text.includes('"jsonrpc"')) throw refusal(answer.status, text)
      const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream')
      for (const one of isStream ? dataIn(text) : [text]) if (one.trim() !== '') this.#print(one)
    } catch (error) {
      if (id === undefined || signal.aborted) return
      this.#fail(id, SERVER_ERROR, error instanceof AppError ? error.message : ERRORS.internal.title)
    } finally {
      if (id !== undefined) this.#running.delete(id)
    }
  }

  #fail(id: string | number | null, code: number, message: string): void {
    this.#print(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } }))
  }
}

function parsed(line: string): Message | undefined {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** The headers that repeat members of a message, as the newest revision of the protocol asks for. */
function headersOf({ method, params }: Message): Record<string, string> {
  const version = params?._meta?.[VERSION]
  if (typeof version !== 'string' || method === undefined) return { accept: ACCEPT }
  const name = params?.name ?? params?.uri
  return { accept: ACCEPT, 'mcp-protocol-version': version, 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) }
}

const dataIn = (events: string): string[] =>
  events.split(/\r?\n/).flatMap((line) => (line.startsWith('data:') ? [line.slice('data:'.length).trim()] : []))

function refusal(status: number, text: string): AppError {
  const reason = /"error":("(?:[^"\\]|\\.)*")/.exec(text)?.[1]
  return new AppError('unavailable', reason === undefined ? `The daemon answered ${status}` : JSON.parse(reason))
}
