/** One connection to an MCP server, on the client of the SDK. This module loads the SDK. */
import {
  Client,
  InsufficientScopeError,
  type Prompt,
  type PromptMessage,
  ProtocolError,
  type Resource,
  type ResourceTemplateType as ResourceTemplate,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  type Transport,
} from '@modelcontextprotocol/client'
import { endsWithin, untilAborted } from '@sluice/kit'
import { AppError, type Clock, errorText, type Logger, oneLine, type ToolContext } from '@sluice/sdk'
import * as v from 'valibot'
import { Announcements } from './announcements.ts'
import { type Definitions, definitionsOf } from './definition.ts'
import type { Offers } from './known-tools.ts'
import { PausableLimit } from './pausable-limit.ts'
import { Questions } from './questions.ts'
import type { CallResult, ResourcePart } from './result-text.ts'

export type ServerTransport = Transport & {
  /** Why the program of the server ended, once it has. */
  readonly endReason?: string | undefined
  /** Tells a server elsewhere that the session is over. */
  terminateSession?(): Promise<void>
}

export interface ConnectOptions {
  /** The name of the server in the configuration. */
  readonly server: string
  readonly transport: ServerTransport
  /** The folder that is announced to the server as its root, as a `file:` URL; absent for a server elsewhere. */
  readonly root: string | undefined
  readonly startTimeoutMs: number
  readonly timeoutMs: number
  readonly clock: Clock
  readonly log: Logger
  /** Called with each list that was asked for because the server announced a change. */
  onListed(listed: ListedServer): Promise<void>
  /** Called once when the connection has ended. */
  onEnd(): void
}

export interface ListedServer extends Definitions {
  readonly offers: Offers
}

const LIST_PAGES_MAX = 32
/** A program that knows only earlier revisions of the protocol may not answer the question for the newest one at all. */
const PROBE_MS_MAX = 5000
const GOODBYE_MS = 1000
const SHOWN_CHARS = 300
/** The longest call in which a person may be asked. */
const ASKING_MS_MAX = 86_400_000

/** A page of a list of tools, whatever each of them is. */
const ANY_TOOLS = v.looseObject({ tools: v.array(v.unknown()), nextCursor: v.optional(v.string()) })

interface RequestOptions {
  readonly timeout: number
  readonly signal: AbortSignal
}

/** The client checks answers of tools against their schemas with this. A schema may be hostile, and the model reads any answer. */
const NO_VALIDATION = {
  getValidator:
    <T>() =>
    (input: T | unknown) => ({ valid: true as const, data: input as NonNullable<T>, errorMessage: undefined }),
}

/** Connects and agrees on the protocol. Rejects with an `AppError` and leaves nothing running. */
export async function connect(options: ConnectOptions, signal: AbortSignal): Promise<Connection> {
  const { transport, root, startTimeoutMs } = options
  const client = new Client(
    { name: 'sluice', version: '1' },
    {
      capabilities: { ...(root !== undefined && { roots: {} }), elicitation: { form: {} } },
      jsonSchemaValidator: NO_VALIDATION,
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(startTimeoutMs, PROBE_MS_MAX) } },
      listMaxPages: LIST_PAGES_MAX,
    },
  )
  const questions = new Questions()
  client.setRequestHandler('elicitation/create', async ({ params }) => questions.answer(params))
  if (root !== undefined) client.setRequestHandler('roots/list', () => ({ roots: [{ uri: root, name: 'workspace' }] }))
  const connection = new Connection(client, questions, options)
  try {
    const connected = client.connect(transport, { timeout: startTimeoutMs, maxTotalTimeout: startTimeoutMs, signal })
    await untilAborted(connected, signal, 'the connection was given up')
    return connection
  } catch (error) {
    await transport.close()
    throw asAppError(error, { ...options, doing: 'answer' })
  }
}

export class Connection {
  readonly #client: Client
  readonly #questions: Questions
  readonly #options: ConnectOptions
  readonly #announcements: Announcements
  readonly #ended = new AbortController()
  /** The hash of each tool by its name, from the last list. */
  readonly #hashes = new Map<string, string>()
  #isForgotten = false
  /** The errors of requests that the server refused because it no longer knows the session. */
  readonly #refusals = new WeakSet<object>()
  /** Why the last unreadable message of the server was not understood. */
  #misunderstood: string | undefined

  /** `client` is not connected yet. */
  constructor(client: Client, questions: Questions, options: ConnectOptions) {
    const { server, log, clock, timeoutMs, onListed } = options
    this.#client = client
    this.#questions = questions
    this.#options = options
    const { signal } = this.#ended
    const list = async () => onListed(await this.list(signal))
    this.#announcements = new Announcements({ client, clock, log, server, timeoutMs, signal, list })
    client.onclose = () => {
      this.#ended.abort()
      options.onEnd()
    }
    client.onerror = (error) => {
      this.#misunderstood = oneLine(errorText(error), SHOWN_CHARS)
      log.debug('MCP message not understood', { server, reason: this.#misunderstood })
    }
  }

  /** True once the server has refused a request because it no longer knows the session. Other requests on it may still be answered. */
  get isForgotten(): boolean {
    return this.#isForgotten
  }

  /** Whether a request of this connection failed with this error because the server no longer knows the session. It did not run that request. */
  hasRefused(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#refusals.has(error)
  }

  get isOpen(): boolean {
    return !this.#ended.signal.aborted
  }

  /** Asks the server for everything that it offers, and takes note of the changes that it announces from then on. */
  async open(signal: AbortSignal): Promise<ListedServer> {
    this.#announcements.start()
    return this.list(signal)
  }

  /** Asks the server for everything that it offers. */
  async list(signal: AbortSignal): Promise<ListedServer> {
    const { tools, resources, prompts } = this.#client.getServerCapabilities() ?? {}
    const definitions = definitionsOf(tools ? await this.#request('list its tools', signal, (options) => this.#listTools(options)) : [])
    this.#hashes.clear()
    for (const { name, hash } of definitions.tools) this.#hashes.set(name, hash)
    return { ...definitions, offers: { resources: resources !== undefined, prompts: prompts !== undefined } }
  }

  /** The hash of the definition that a tool of the last list has; undefined for a tool that was not in it. */
  hashOf(tool: string): string | undefined {
    return this.#hashes.get(tool)
  }

  /** `ask` puts questions of the server to a person; the time that it takes does not count. */
  async call(name: string, input: Record<string, unknown>, { signal, ask }: Pick<ToolContext, 'signal' | 'ask'>): Promise<CallResult> {
    const { server, timeoutMs } = this.#options
    const doing = `run '${name}'`
    const send = (options: RequestOptions) => this.#client.callTool({ name, arguments: input }, options)
    if (!ask) return this.#request(doing, signal, send)
    using limit = new PausableLimit(timeoutMs, signal)
    const end = this.#questions.begin((about) => limit.paused(() => ask(about)))
    try {
      return await this.#request(doing, limit.signal, (options) => send({ ...options, timeout: ASKING_MS_MAX }))
    } catch (error) {
      throw limit.isOver ? tooLate({ server, doing, misunderstood: this.#misunderstood }, error) : error
    } finally {
      end()
    }
  }

  async #listTools(options: RequestOptions): Promise<readonly unknown[]> {
    try {
      return (await this.#client.listTools(undefined, { ...options, cacheMode: 'refresh' })).tools
    } catch (error) {
      if (!(error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)) throw error
      // The client refuses the whole list for one tool, such as one whose schema is a union. The tools are read one by one instead.
      return await this.#listAnyTools(options)
    }
  }

  async #listAnyTools(options: RequestOptions): Promise<readonly unknown[]> {
    const all: unknown[] = []
    let cursor: string | undefined
    for (let page = 0; page < LIST_PAGES_MAX; page++) {
      const params = cursor === undefined ? {} : { cursor }
      const { tools, nextCursor } = await this.#client.request({ method: 'tools/list', params }, ANY_TOOLS, options)
      all.push(...tools)
      if (nextCursor === undefined) break
      cursor = nextCursor
    }
    return all
  }

  async listResources(
    signal: AbortSignal,
  ): Promise<{ readonly resources: readonly Resource[]; readonly templates: readonly ResourceTemplate[] }> {
    const [{ resources }, { resourceTemplates }] = await this.#request('list its resources', signal, (options) =>
      Promise.all([this.#client.listResources(undefined, options), this.#client.listResourceTemplates(undefined, options)]),
    )
    return { resources, templates: resourceTemplates }
  }

  async readResource(uri: string, signal: AbortSignal): Promise<readonly ResourcePart[]> {
    const { contents } = await this.#request(`read '${uri}'`, signal, (options) => this.#client.readResource({ uri }, options))
    return contents
  }

  async listPrompts(signal: AbortSignal): Promise<readonly Prompt[]> {
    const { prompts } = await this.#request('list its prompts', signal, (options) => this.#client.listPrompts(undefined, options))
    return prompts
  }

  async getPrompt(name: string, values: Record<string, string>, signal: AbortSignal): Promise<readonly PromptMessage[]> {
    const { messages } = await this.#request(`fill in the prompt '${name}'`, signal, (options) =>
      this.#client.getPrompt({ name, arguments: values }, options),
    )
    return messages
  }

  /** Ends the connection, and the process of a server on this machine. Idempotent; never rejects. */
  async close(): Promise<void> {
    const { transport, clock } = this.#options
    // The session ends by itself on a server that does not answer.
    const ended = transport.terminateSession?.().catch(() => undefined)
    if (ended) await endsWithin(ended, GOODBYE_MS, clock)
    await this.#client.close().catch(() => undefined)
  }

  async #request<Result>(doing: string, signal: AbortSignal, send: (options: RequestOptions) => Promise<Result>): Promise<Result> {
    this.#misunderstood = undefined
    try {
      return await send({ timeout: this.#options.timeoutMs, signal })
    } catch (error) {
      if (signal.aborted) throw signal.reason
      const failure = asAppError(error, { ...this.#options, doing, misunderstood: this.#misunderstood })
      if (isForgotten(error)) {
        this.#isForgotten = true
        this.#refusals.add(failure)
      }
      throw failure
    }
  }
}

/** The codes by which a server refuses a request before any tool runs. */
const REFUSED_CODES: readonly number[] = [-32_000, -32_001, -32_600]
const SESSION_ALONE_GONE =
  /^(?:MCP error -\d{5}: )?(?:Bad Request: )?(?:(?:unknown|invalid|expired) session(?: id)?|session(?: id)?(?: was| is| has)? (?:not found|unknown|expired|invalid|terminated))\.?$/i
/** Words of servers and of the proxies before them about a session that they no longer have. */
const SESSION_GONE =
  /\b(?:unknown|invalid|expired|no such|no valid|missing) session\b|\bsession(?: id)?(?: was| is| has)? (?:not found|unknown|expired|invalid|terminated|closed)\b|\bsession (?:does not exist|no longer exists)\b/i

/**
 * Whether the server no longer knows the session. The protocol says 404; servers made from the examples of the SDK answer 400 with
 * `No valid session ID provided`, or `Server not initialized` after a restart. Others answer another status, or an error of the protocol, in
 * words that mean nothing else.
 */
function isForgotten(error: unknown): boolean {
  // A tool has ended with an error of its own where it names another session, such as that of a browser: it may have done its work.
  if (error instanceof ProtocolError) return REFUSED_CODES.includes(error.code) && SESSION_ALONE_GONE.test(error.message)
  if (!(error instanceof SdkHttpError)) return false
  const { status } = error
  if (status === 404 || status === 410) return true
  const said = errorText(error)
  return status === 400 ? /\bsession\b|\bserver not initialized\b/i.test(said) : status < 500 && SESSION_GONE.test(said)
}

/** A request that failed. */
interface Failed {
  readonly server: string
  readonly doing: string
  /** Why a message of the server was not understood while it ran. */
  readonly misunderstood?: string | undefined
}

/** Says which server failed, at which task, and why it ended if it did. */
function asAppError(error: unknown, failed: Failed & Pick<ConnectOptions, 'transport'>): AppError {
  const { server, doing, transport } = failed
  const because = (why: string) => `The MCP server '${server}' did not ${doing}: ${why}`
  if (transport.endReason !== undefined) return new AppError('upstream', because(transport.endReason), { cause: error })
  if (error instanceof AppError) return error
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) return tooLate(failed, error)
  if (error instanceof InsufficientScopeError) {
    const cure = `it asks for more permissions: run 'sluice mcp login ${server}'`
    return new AppError('unauthorized', because(cure), { cause: error })
  }
  if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
    return new AppError('upstream', because(`its answer is not valid: ${oneLine(errorText(error), SHOWN_CHARS)}`), { cause: error })
  return new AppError('upstream', because(error instanceof ProtocolError ? error.message : errorText(error)), { cause: error })
}

function tooLate({ server, doing, misunderstood }: Failed, cause: unknown): AppError {
  const why = misunderstood === undefined ? '' : `; one of its messages was not understood: ${misunderstood}`
  return new AppError('upstream_timeout', `The MCP server '${server}' did not ${doing} in time${why}`, { cause })
}
