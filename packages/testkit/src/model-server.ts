/**
 * An HTTP server that speaks the wire formats of model services, for tests of code that calls a model. Start it by hand with
 * `node packages/testkit/src/model-server.ts`. It refuses the requests that the real services refuse.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { headersIn, jsonIn, listenOnLoopback, readWhole } from './loopback-server.ts'
import { type FullReply, type ModelFrames, type ModelReply, type ModelStep, type ModelWire, tokens } from './model-script.ts'
import { anthropicWire } from './model-wire-anthropic.ts'
import { googleWire } from './model-wire-google.ts'
import { CHAT_WIRES, openaiWire } from './model-wire-openai.ts'
import { responsesWire } from './model-wire-responses.ts'

export { CHAT_DIALECTS } from './model-dialects.ts'
export type { ModelFault, ModelFrames, ModelRefusal, ModelReply, ModelStep, ModelToolCall } from './model-script.ts'

/** A request that arrived at the server. */
export interface ModelRequest {
  readonly wire: ModelWire['name']
  readonly headers: Headers
  /** The body parsed as JSON; `undefined` if it is not JSON. */
  readonly body: unknown
  /** The newest text of the user, without the note about its situation. */
  readonly lastUserText: string
  /** Why the server refused the request without taking a step; `null` if it accepted it. */
  readonly refused: string | null
  /** Resolves when the exchange ends: `answered` after the full answer, `broken` if either side closed the connection. */
  readonly ended: Promise<'answered' | 'broken'>
}

/** How the server starts. */
export interface ModelServerOptions {
  /** The key that every request must carry; `null` for none, as with local servers. Default `test-key-0123456789`. */
  readonly apiKey?: string | null
  /** The models that `GET /v1/models` lists. Default: `small`. */
  readonly models?: readonly string[]
  /** Gives the step for a request when the script is empty. Default: a reply that echoes the user's text. */
  readonly answer?: (request: ModelRequest) => ModelStep | Promise<ModelStep>
}

/** A running server. */
export interface ModelServer {
  /** `http://127.0.0.1:PORT`. The paths of both wire formats start with `/v1`; the paths of other services with `/<service>/v1`, as in `CHAT_DIALECTS`. */
  readonly url: string
  readonly apiKey: string
  /** The last `REQUESTS_MAX` requests, including refused ones. */
  readonly requests: readonly ModelRequest[]
  /** Queues steps: each accepted request takes the next one. */
  script(...steps: readonly ModelStep[]): void
  /** Breaks open connections. */
  close(): Promise<void>
}

/** The default API key. */
export const TEST_API_KEY = 'test-key-0123456789'
/** The number of requests that the server remembers. */
export const REQUESTS_MAX = 10_000
/** OpenAI and Anthropic list their models at the same path, but Anthropic requires its version header. */
const MODELS_PATH = /\/v1(?:beta)?\/models(?:\?|$)/
const BODY_BYTES_MAX = 16 * 1024 * 1024
const WIRES: readonly ModelWire[] = [...CHAT_WIRES, responsesWire, anthropicWire, googleWire]

/** Returns a message without the note in brackets that the agent writes before its text. */
export const withoutSituation = (text: string): string => text.replace(/^\[\w+ \d+ \w+ \d{4} [^\n]*\]\n/, '')

/** Starts the server on any free port; call `close` to end it. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const apiKey = options.apiKey === undefined ? TEST_API_KEY : (options.apiKey ?? '')
  const answer = options.answer ?? (({ lastUserText }) => ({ text: `You said: ${lastUserText}` }))
  const requests: ModelRequest[] = []
  const steps: ModelStep[] = []
  let answered = 0

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { url = '' } = incoming
    if (incoming.method === 'GET' && MODELS_PATH.test(url)) return serveModels(incoming, outgoing)
    const wire = WIRES.find(({ serves }) => serves(url))
    if (!wire || incoming.method !== 'POST')
      return sendJson(outgoing, 404, openaiWire.error(404, `Unknown: ${incoming.method} ${incoming.url}`))
    const ended = new Promise<'answered' | 'broken'>((resolve) =>
      outgoing.on('close', () => resolve(outgoing.writableFinished ? 'answered' : 'broken')),
    )
    const headers = headersIn(incoming)
    const body = jsonIn(await readWhole(incoming, BODY_BYTES_MAX))
    const refusal = refusalOf(wire, headers, body, apiKey)
    const lastUserText = refusal ? '' : withoutSituation(wire.lastUserText(body))
    const request: ModelRequest = { wire: wire.name, headers, body, lastUserText, refused: refusal?.message ?? null, ended }
    requests.push(request)
    if (requests.length > REQUESTS_MAX) requests.shift()
    if (refusal) return sendJson(outgoing, refusal.status, refusal.body ?? wire.error(refusal.status, refusal.message))
    await play(steps.shift() ?? (await answer(request)), { wire, url, body, number: ++answered }, outgoing)
  }

  const serveModels = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const headers = headersIn(incoming)
    const wire = incoming.url?.startsWith('/v1beta') ? googleWire : headers.has('anthropic-version') ? anthropicWire : openaiWire
    const isRefused = apiKey !== '' && wire.apiKey(headers) !== apiKey
    const refusal = { status: 401, body: wire.error(401, 'Incorrect API key provided'), ...wire.refusedKey }
    if (isRefused) sendJson(outgoing, refusal.status, refusal.body)
    else sendJson(outgoing, 200, wire.models(options.models ?? ['small']))
  }

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error instanceof Error ? error : undefined))
  })
  return {
    ...(await listenOnLoopback(server)),
    apiKey,
    requests,
    script: (...more) => void steps.push(...more),
  }
}

interface Refusal {
  readonly status: number
  readonly message: string
  /** The body of the service; by default made from the message. */
  readonly body?: unknown
}

function refusalOf(wire: ModelWire, headers: Headers, body: unknown, apiKey: string): Refusal | undefined {
  if (apiKey !== '' && wire.apiKey(headers) !== apiKey)
    return { status: 401, message: `Incorrect API key provided: ${wire.apiKey(headers)}`, ...wire.refusedKey }
  const type = headers.get('content-type') ?? ''
  if (!/^application\/json(;|$)/.test(type)) return { status: 400, message: `Unsupported content type: ${type}` }
  if (body === undefined) return { status: 400, message: 'The body of the request is not JSON' }
  const problem = wire.problem(headers, body)
  if (typeof problem === 'object') return { ...problem, message: JSON.stringify(problem.body) }
  return problem === undefined ? undefined : { status: 400, message: problem }
}

/** An accepted request. */
interface Accepted {
  readonly wire: ModelWire
  readonly url: string
  readonly body: unknown
  /** Counts the answers of this server from 1. */
  readonly number: number
}

async function play(step: ModelStep, accepted: Accepted, outgoing: ServerResponse): Promise<void> {
  const { wire, url, body } = accepted
  const streams = wire.streams?.(body, url) ?? isStream(body)
  if ('status' in step) return sendJson(outgoing, step.status, step.body ?? wire.error(step.status, 'Scripted refusal'), step.headers)
  if ('frames' in step) return sendPieces(outgoing, step)
  if (!('fault' in step)) {
    const reply = complete(step, accepted)
    return streams ? sendEvents(outgoing, wire.events(reply, body), step) : sendJson(outgoing, 200, wire.json(reply))
  }
  if (step.fault === 'hang') return
  if (step.fault === 'reset') return void outgoing.socket?.resetAndDestroy()
  outgoing.writeHead(200, { 'content-type': streams ? EVENT_STREAM : 'application/json' })
  outgoing.end(streams ? 'data: {"choices": [<html>\n\n' : '<html>Bad gateway</html>')
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8'

function complete(reply: ModelReply, { wire, url, body, number }: Accepted): FullReply {
  const { thinking = '', text = '', toolCalls = [], cutShort = false } = reply
  return {
    number,
    model: wire.model?.(body, url) ?? (body as { model: string }).model,
    thinking,
    text,
    toolCalls: toolCalls.map((call, index) => ({ id: `call_${number}_${index}`, ...call })),
    usage: reply.usage ?? { inputTokens: tokens(JSON.stringify(body)), outputTokens: tokens(text + JSON.stringify(toolCalls)) },
    cutShort,
  }
}

function sendJson(outgoing: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }).end(text)
}

async function sendEvents(outgoing: ServerResponse, events: readonly string[], { chunkMs = 0, breakAfter, endAfter }: ModelReply) {
  const left = new AbortController()
  outgoing.on('close', () => left.abort())
  outgoing.writeHead(200, { 'content-type': EVENT_STREAM })
  for (const event of events.slice(0, breakAfter ?? endAfter)) {
    if (chunkMs > 0) await sleep(chunkMs, undefined, { signal: left.signal }).catch(() => undefined)
    if (outgoing.destroyed) return
    await new Promise<void>((resolve) => outgoing.write(event, () => resolve()))
  }
  if (breakAfter === undefined) outgoing.end()
  else outgoing.destroy()
}

async function sendPieces(outgoing: ServerResponse, { frames, pieceBytes }: ModelFrames): Promise<void> {
  const events = frames.map((frame) => Buffer.from(typeof frame === 'string' ? frame : eventOf(frame)))
  const whole = Buffer.concat(events)
  const pieces = pieceBytes
    ? Array.from({ length: Math.ceil(whole.length / pieceBytes) }, (_, at) => whole.subarray(at * pieceBytes, (at + 1) * pieceBytes))
    : events
  outgoing.writeHead(200, { 'content-type': EVENT_STREAM })
  for (const piece of pieces) {
    // A tick of the event loop between pieces keeps them apart on the connection.
    await new Promise<void>((resolve) => outgoing.write(piece, () => setImmediate(resolve)))
  }
  outgoing.end()
}

/** Anthropic and the Responses API name each event by its type; chat completions has no names. */
function eventOf(frame: unknown): string {
  const { type } = frame as { type?: unknown }
  return `${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${JSON.stringify(frame)}\n\n`
}

const isStream = (body: unknown): boolean => (body as { stream?: unknown }).stream === true

if (import.meta.main) console.log(`${(await startModelServer({ apiKey: null })).url}/v1`)
