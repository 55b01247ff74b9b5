/** What a test can make the model server answer, and what both of its wire formats have in common. */

export interface ModelToolCall {
  /** Default: made up, unique on this server. */
  readonly id?: string
  readonly name: string
  readonly input: unknown
}

export interface ModelReply {
  readonly text?: string
  readonly toolCalls?: readonly ModelToolCall[]
  /** Default: four characters a token. */
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number }
  /** True: the model ran out of output tokens. */
  readonly cutShort?: boolean
  /** Milliseconds before each chunk of a stream. */
  readonly chunkMs?: number
  /** How many chunks of a stream are sent before the connection breaks. */
  readonly breakAfter?: number
  /** How many are sent before the answer ends as if that were all, as behind an impatient proxy. */
  readonly endAfter?: number
}

/** An answer that is no 2xx; by default with the body the real service would send. */
export interface ModelRefusal {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** `reset`: the connection breaks before any answer; `hang`: no answer ever; `garbage`: 200 with a body that makes no sense. */
export interface ModelFault {
  readonly fault: 'reset' | 'hang' | 'garbage'
}

export type ModelStep = ModelReply | ModelRefusal | ModelFault

/** A reply with nothing left open. */
export interface FullReply {
  /** Of this answer; ids are made from it. */
  readonly number: number
  readonly model: string
  readonly text: string
  readonly toolCalls: readonly Required<ModelToolCall>[]
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly cutShort: boolean
}

/** One wire format: what it refuses and how it writes an answer. */
export interface ModelWire {
  readonly name: 'openai' | 'anthropic'
  readonly path: string
  /** The key a request carries; empty: none. */
  apiKey(headers: Headers): string
  /** The answer to `GET /v1/models`. */
  models(names: readonly string[]): unknown
  /** Why the service would refuse the request with 400; `undefined` if it would not. */
  problem(headers: Headers, body: unknown): string | undefined
  /** The body of an error answer. */
  error(status: number, message: string): unknown
  /** The last thing the user said in a request without problems. */
  lastUserText(body: unknown): string
  json(reply: FullReply): unknown
  /** The chunks of a stream, each a whole server-sent event. */
  events(reply: FullReply, body: unknown): readonly string[]
}

/** Words with the space behind them: joined they are the text again. */
export const words = (text: string): readonly string[] => text.match(/\S+\s*|^\s+/g) ?? []

/** At least two pieces of any text that is longer than one character. */
export function pieces(text: string): readonly string[] {
  const size = Math.max(1, Math.ceil(text.length / 3))
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size))
}

export const tokens = (text: string): number => Math.ceil(text.length / 4)
