/** The scripted steps of the model server, and what its two wire formats share. */

/** A tool call of the model. */
export interface ModelToolCall {
  /** Default: a generated id, unique on this server. */
  readonly id?: string
  readonly name: string
  readonly input: unknown
}

/** A reply of the model and how it is sent. */
export interface ModelReply {
  /** The reasoning before the answer; only the Responses API sends it. */
  readonly thinking?: string
  readonly text?: string
  readonly toolCalls?: readonly ModelToolCall[]
  /** Default: one token for every four characters. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number }
  /** Whether the model ran out of output tokens. */
  readonly cutShort?: boolean
  /** Milliseconds to wait before each chunk of a stream. */
  readonly chunkMs?: number
  /** The number of chunks after which the connection breaks. */
  readonly breakAfter?: number
  /** The number of chunks after which the stream ends as if it were complete, as behind a proxy with a time limit. */
  readonly endAfter?: number
}

/** An error answer. Default body: the one the real service sends. */
export interface ModelRefusal {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** `reset`: the connection breaks before any answer. `hang`: no answer ever. `garbage`: status 200 with an invalid body. */
export interface ModelFault {
  readonly fault: 'reset' | 'hang' | 'garbage'
}

/** A stream written out: each frame is sent as one event, a string as it is and anything else as JSON. */
export interface ModelFrames {
  readonly frames: readonly unknown[]
  /** The number of bytes in each piece of the stream, which may end anywhere. Default: one piece for each event. */
  readonly pieceBytes?: number
}

/** One step of the script. */
export type ModelStep = ModelReply | ModelRefusal | ModelFault | ModelFrames

/** A reply with every default filled in. */
export interface FullReply {
  /** Counts the answers of this server from 1; ids contain it. */
  readonly number: number
  readonly model: string
  readonly thinking: string
  readonly text: string
  readonly toolCalls: readonly Required<ModelToolCall>[]
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly cutShort: boolean
}

/** A wire format: which requests it refuses and how it writes an answer. */
export interface ModelWire {
  readonly name: 'openai' | 'responses' | 'anthropic' | 'google'
  /** Tells whether a `POST` to this path, with its query, is a call of a model. */
  serves(url: string): boolean
  /** Whether a request asks for a stream. Default: as its member `stream` says. */
  streams?(body: unknown, url: string): boolean
  /** The model of a valid request. Default: its member `model`. */
  model?(body: unknown, url: string): string
  /** The API key in a request's headers; empty without one. */
  apiKey(headers: Headers): string
  /** How the service refuses a wrong key. Default: 401. */
  readonly refusedKey?: { readonly status: number; readonly body: unknown }
  /** The answer to `GET /v1/models`. */
  models(names: readonly string[]): unknown
  /** Why the service would refuse the request, with status 400, or with its own status and body; `undefined` if it would accept it. */
  problem(headers: Headers, body: unknown): string | { readonly status: number; readonly body: unknown } | undefined
  /** The body of an error answer. */
  error(status: number, message: string): unknown
  /** The text of the last user message in a valid request. */
  lastUserText(body: unknown): string
  json(reply: FullReply): unknown
  /** The chunks of a stream; each is a complete server-sent event. */
  events(reply: FullReply, body: unknown): readonly string[]
}

/** Splits a text into words with their trailing spaces; joined they are the text again. */
export const words = (text: string): readonly string[] => text.match(/\S+\s*|^\s+/g) ?? []

/** Splits a text of two or more characters into two or three pieces. */
export function pieces(text: string): readonly string[] {
  const size = Math.max(1, Math.ceil(text.length / 3))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size))
}

/** The number of tokens of a text, counted as four characters each. */
export const tokens = (text: string): number => Math.ceil(text.length / 4)
