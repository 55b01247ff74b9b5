/** Kept messages as the API shows them: the text, and which tools were used. */
import type { ModelMessage } from '@sluice/sdk'

export interface PlainMessage {
  readonly role: ModelMessage['role']
  /** The text parts, joined. */
  readonly content: string
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]
  readonly tool_results?: readonly { readonly id: string; readonly name: string; readonly output: unknown }[]
}

export function plainMessage(message: ModelMessage): PlainMessage {
  const { role, content } = message
  if (typeof content === 'string') return { role, content }
  const text: string[] = []
  const calls: { id: string; name: string; input: unknown }[] = []
  const results: { id: string; name: string; output: unknown }[] = []
  for (const part of content) {
    if (part.type === 'text') text.push(part.text)
    else if (part.type === 'tool-call') calls.push({ id: part.toolCallId, name: part.toolName, input: part.input })
    else if (part.type === 'tool-result') {
      results.push({ id: part.toolCallId, name: part.toolName, output: 'value' in part.output ? part.output.value : part.output.type })
    }
  }
  return {
    role,
    content: text.join(''),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(results.length > 0 ? { tool_results: results } : {}),
  }
}
