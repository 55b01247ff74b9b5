/**
 * Leaves out the parts of a reply whose type the AI SDK does not know, because it fails the whole reply for one of them. Anthropic adds
 * types of events and content at any time, and clients have to ignore those they do not know:
 * https://docs.anthropic.com/en/api/versioning and https://docs.anthropic.com/en/docs/build-with-claude/streaming.
 */

import { filteringReplies } from '@sluice/provider-common'

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

/** Whether a block is the result of a tool that the server ran, whose call none of these blocks is. The call may be in an earlier message, which the AI SDK does not look for. */
function isOrphan(block: unknown, calls: ReadonlySet<unknown>): boolean {
  const { tool_use_id } = membersOf(block)
  return tool_use_id !== undefined && !calls.has(tool_use_id)
}

/** Wraps `fetch`. Answers with errors stay as they are. */
export const skippingUnknown = (plainFetch: typeof fetch): typeof fetch =>
  filteringReplies(plainFetch, { body: knownMessage, events: eventFilter })

/** Filters a whole message. Any other body stays as it is. */
function knownMessage(body: unknown): unknown {
  const message = membersOf(body)
  if (!Array.isArray(message.content)) return body
  const calls = new Set(message.content.map((block) => membersOf(block).id))
  const isWanted = (block: unknown): boolean => isKnown(BLOCKS, block) && !isOrphan(block, calls)
  const content = message.content.filter(isWanted).map(({ citations: _, ...block }) => block)
  return { ...message, content }
}

/** Returns the filter of one stream. A block that is left out is so from its start to its stop. */
function eventFilter(): (event: unknown) => unknown {
  const skipped = new Set<unknown>()
  const calls = new Set<unknown>()
  const isWanted = (event: unknown): boolean => {
    const { type, index, content_block, delta } = membersOf(event)
    if (!isKnown(EVENTS, event)) return false
    if (type === 'content_block_start') {
      calls.add(membersOf(content_block).id)
      if (!isKnown(BLOCKS, content_block) || isOrphan(content_block, calls)) skipped.add(index)
    }
    if (type === 'content_block_delta' && !isKnown(DELTAS, delta)) return false
    if (!skipped.has(index)) return true
    if (type === 'content_block_stop') skipped.delete(index)
    return index === undefined
  }
  return (event) => (isWanted(event) ? event : undefined)
}
