/** Restores an interrupted turn from its checkpoint: its messages, and the calls of its last reply that have no results. */
import type { ModelMessage } from '@sluice/sdk'
import type { ToolResultPart } from '../tools/tool-call.ts'
import type { ToolRound } from '../tools/tool-round.ts'

export interface RestoredTurn {
  /** The messages up to the last reply when it has open calls, else all messages. */
  readonly messages: ModelMessage[]
  /** The calls of the last reply; undefined when all have results. */
  readonly open: ToolRound | undefined
}

export function restoreTurn(checkpoint: readonly ModelMessage[]): RestoredTurn {
  const at = checkpoint.findLastIndex(({ role }) => role === 'assistant')
  const reply = checkpoint[at]
  if (reply?.role !== 'assistant') return { messages: [...checkpoint], open: undefined }
  const calls = reply.content.flatMap((part) =>
    part.type === 'tool-call' && !part.providerExecuted
      ? { id: part.toolCallId, name: part.toolName, input: JSON.stringify(part.input ?? {}) }
      : [],
  )
  const results = checkpoint.slice(at + 1).flatMap(resultsOf)
  const isClosed = calls.every(({ id }) => results.some(({ toolCallId }) => toolCallId === id))
  return isClosed ? { messages: [...checkpoint], open: undefined } : { messages: checkpoint.slice(0, at + 1), open: { calls, results } }
}

const resultsOf = (message: ModelMessage): ToolResultPart[] =>
  message.role === 'tool' ? message.content.filter((part) => part.type === 'tool-result') : []
