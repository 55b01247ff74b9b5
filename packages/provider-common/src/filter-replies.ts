/** Changes the replies of a model service before a library reads them: whole JSON bodies, and the events of streams. */

import { readUpTo } from '@sluice/kit'
import { mapStream, type StreamMapping } from './map-stream.ts'

/** A longer reply is an error: no person reads a text of this length. */
const REPLY_BYTES_MAX = 32 * 1024 * 1024

export interface ReplyFilter {
  /** Returns the body to read in place of this parsed body; the same value leaves it as it is. */
  body(value: unknown): unknown
  /** Makes the filter of one stream. It returns the event to read; the same value leaves it as it is, undefined leaves it out. */
  events(): (event: unknown) => unknown
  /** Tells from the JSON of an event whether it may need a change. Without it, every event is parsed. */
  concerns?(json: string): boolean
}

/** Wraps `fetch`. Answers with errors, and JSON that cannot be parsed, stay as they are. */
export function filteringReplies(plainFetch: typeof fetch, filter: ReplyFilter): typeof fetch {
  return async (input, init) => {
    const response = await plainFetch(input, init)
    const type = response.headers.get('content-type') ?? ''
    if (!response.ok || !response.body) return response
    const { status, statusText, headers } = response
    if (type.startsWith('text/event-stream'))
      return new Response(mapStream(response.body, filterEvents(filter)), { status, statusText, headers })
    const body = await readUpTo(response, REPLY_BYTES_MAX)
    if (body === undefined) throw new Error(`the reply is longer than ${REPLY_BYTES_MAX} bytes`)
    return new Response(filterBody(`${body}`, filter), { status, statusText, headers })
  }
}

function filterBody(body: string, filter: ReplyFilter): string {
  const value = parsed(body)
  if (value === undefined) return body
  const changed = filter.body(value)
  return changed === value ? body : JSON.stringify(changed)
}

const EVENT_END = /\r?\n\r?\n/
const DATA = 'data:'

function filterEvents(filter: ReplyFilter): StreamMapping<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const change = filter.events()
  let rest = ''
  return {
    push(chunk, emit) {
      const events = (rest + decoder.decode(chunk, { stream: true })).split(EVENT_END)
      rest = events.pop() ?? ''
      const wanted = events.flatMap((event) => filterEvent(event, change, filter) ?? [])
      if (wanted.length > 0) emit(encoder.encode(wanted.map((event) => `${event}\n\n`).join('')))
    },
    end(emit) {
      // An event without its end is left to the library, which ignores it.
      if (rest !== '') emit(encoder.encode(rest))
    },
  }
}

function filterEvent(event: string, change: (event: unknown) => unknown, { concerns }: ReplyFilter): string | undefined {
  const at = event.startsWith(DATA) ? 0 : event.indexOf(`\n${DATA}`) + 1
  if (at === 0 && !event.startsWith(DATA)) return event // A comment, such as a keep-alive.
  const json = event.slice(at + DATA.length)
  if (concerns?.(json) === false) return event
  const value = parsed(json)
  if (value === undefined) return event // The library reports an event that is not JSON.
  const changed = change(value)
  if (changed === undefined) return undefined
  return changed === value ? event : `${event.slice(0, at)}${DATA} ${JSON.stringify(changed)}`
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
