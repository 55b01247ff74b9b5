/** The parts that the tests of chat models share. */
import type { LanguageModel, ModelPrompt, ModelStreamPart } from '@sluice/sdk'

export const hello: ModelPrompt = [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }]

export async function collect(model: LanguageModel, prompt: ModelPrompt = hello): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  for await (const part of (await model.doStream({ prompt })).stream) parts.push(part)
  return parts
}

/** Joins the deltas of one type. */
export const deltas = (parts: readonly ModelStreamPart[], type: 'text-delta' | 'reasoning-delta'): string =>
  parts.map((part) => (part.type === type ? part.delta : '')).join('')

/** A chunk of a chat completions stream with this delta. */
export const chunk = (delta: object, finish_reason: string | null = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'small',
  choices: [{ index: 0, delta, finish_reason }],
})

export const DONE = 'data: [DONE]\n\n'

/** A whole answer with this message. */
export const completion = (message: object, finish_reason: string | null = 'stop') => ({
  status: 200,
  body: {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'small',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }],
  },
})
