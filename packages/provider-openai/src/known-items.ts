/**
 * Leaves out the parts of a reply of the Responses API that the agent does not use, because the AI SDK fails the whole reply for an item,
 * a part or an annotation whose type or values it does not know. OpenAI adds such types at any time:
 * https://platform.openai.com/docs/api-reference/backward-compatibility.
 */

import { list, type Members, members } from '@sluice/kit/foreign-json'
import { filteringReplies } from '@sluice/provider-common'

/** Items of tools that the service runs itself, such as `web_search_call`, are left out: without a stored reply they cannot go back. */
const ITEMS = new Set(['message', 'reasoning', 'function_call', 'compaction'])
const PARTS = new Set(['output_text', 'refusal'])

const isKnown = (types: ReadonlySet<string>, value: unknown): boolean => types.has(String(members(value).type))

/** Wraps `fetch`. Answers with errors stay as they are. */
export const keepingKnownItems = (plainFetch: typeof fetch): typeof fetch =>
  filteringReplies(plainFetch, {
    body: knownOutput,
    events: () => knownEvent,
    concerns: (json) => json.includes('"response.output_item.') || json.includes('annotation.added"'),
  })

/** Filters a whole response. A body without output stays as it is. */
function knownOutput(body: unknown): unknown {
  const { output } = members(body)
  return Array.isArray(output) ? { ...members(body), output: output.filter((item) => isKnown(ITEMS, item)).map(knownItem) } : body
}

function knownEvent(event: unknown): unknown {
  const { type, item } = members(event)
  if (type === 'response.output_text.annotation.added') return undefined
  if (type !== 'response.output_item.added' && type !== 'response.output_item.done') return event
  return isKnown(ITEMS, item) ? { ...members(event), item: knownItem(item) } : undefined
}

/** The agent does not use annotations, and their types grow too. */
function knownItem(item: unknown): Members {
  const known = members(item)
  if (known.type !== 'message') return known
  const content = list(known.content).filter((part) => isKnown(PARTS, part))
  return { ...known, content: content.map((part) => (members(part).type === 'output_text' ? { ...members(part), annotations: [] } : part)) }
}
