/**
 * Leaves out the parts of a reply whose type the AI SDK does not know, because it fails the whole reply for one of them. Anthropic adds
 * types of events and content at any time, and clients have to ignore those they do not know:
 * https://docs.anthropic.com/en/api/versioning and https://docs.anthropic.com/en/docs/build-with-claude/streaming.
 */

import { mapStream, readUpTo, type StreamMapping } from '@sluice/kit'

/** A longer reply is an error: no person reads a text of this length. */
const REPLY_BYTES_MAX = 32 * 1024 * 1024

/** The types that `@ai-sdk/anthropic` reads. */
const EVENTS = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
])
const BLOCKS = new Set([
  'text',
  'thinking',
  'redacted_thinking',
  'compaction',
  'fallback',
  'tool_use',
  'server_tool_use',
  'mcp_tool_use',
  'mcp_tool_result',
  'web_fetch_tool_result',
  'web_search_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'advisor_tool_result',
])
/** Without `citations_delta`: the agent does not use citations, and their types grow too. */
const DELTAS = new Set(['text_delta', 'input_json_delta', 'thinking_delta', 'signature_delta', 'compaction_delta'])

type Members = Readonly<Record<string, unknown>>
const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})
const isKnown = (types: ReadonlySet<string>, value: unknown): boolean => types.has(String(membersOf(value).type))

/** Wraps `fetch`. Answers with errors stay as they are. */
export function skippingUnknown(plainFetch: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await plainFetch(input, init)
    const type = response.headers.get('content-type') ?? ''
    if (!response.ok || !response.body) return response
    const { status, statusText, headers } = response
    if (type.startsWith('text/event-stream')) return new Response(mapStream(response.body, filterEvents()), { status, statusText, headers })
    const body = await readUpTo(response, REPLY_BYTES_MAX)
    if (body === undefined) throw new Error(`the reply is longer than ${REPLY_BYTES_MAX} bytes`)
    return new Response(filterMessage(`${body}`), { status, statusText, headers })
  }
}

/** Filters a whole message. A body that is no message stays as it is. */
function filterMessage(body: string): string {
  const message = membersOf(parsed(body))
  if (!Array.isArray(message.content)) return body
  const content = message.content.filter((block) => isKnown(BLOCKS, block)).map(({ citations: _, ...block }) => block)
  return JSON.stringify({ ...message, content })
}

const EVENT_END = /\r?\n\r?\n/

function filterEvents(): StreamMapping<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const isWanted = eventFilter()
  let rest = ''
  return {
    push(chunk, emit) {
      const events = (rest + decoder.decode(chunk, { stream: true })).split(EVENT_END)
      rest = events.pop() ?? ''
      const wanted = events.filter(isWanted)
      if (wanted.length > 0) emit(encoder.encode(wanted.map((event) => `${event}\n\n`).join('')))
    },
    end(emit) {
      // An event without its end is left to the SDK, which ignores it.
      if (rest !== '') emit(encoder.encode(rest))
    },
  }
}

/** Returns the filter of one stream. A block of an unknown type is left out from its start to its stop. */
function eventFilter(): (event: string) => boolean {
  const skipped = new Set<unknown>()
  return (event) => {
    const at = event.startsWith('data:') ? 0 : event.indexOf('\ndata:') + 1
    if (at === 0 && !event.startsWith('data:')) return true // A comment, such as a keep-alive.
    const value = parsed(event.slice(at + 'data:'.length))
    if (value === undefined) return true // The SDK reports an event that is not JSON.
    const { type, index, content_block, delta } = membersOf(value)
    if (!isKnown(EVENTS, value)) return false
    if (type === 'content_block_start' && !isKnown(BLOCKS, content_block)) skipped.add(index)
    if (type === 'content_block_delta' && !isKnown(DELTAS, delta)) return false
    if (!skipped.has(index)) return true
    if (type === 'content_block_stop') skipped.delete(index)
    return index === undefined
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
