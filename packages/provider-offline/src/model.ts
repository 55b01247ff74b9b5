/** The offline provider as a language model: it implements the model contract and computes each answer locally. */
import type { LanguageModel, ModelCallOptions, ModelFinishReason, ModelPrompt, ModelStreamPart, ModelUsage } from '@sluice/sdk'
import { promptTokens } from './conversation.ts'
import { type Reply, reply } from './reply.ts'

/** The most text deltas in one stream; a longer text has longer deltas. */
const DELTAS_MAX = 256

/** Creates the model. It holds no state and is deterministic: equal prompts get equal answers, call ids included. */
export const offlineModel = (): LanguageModel => ({
  specificationVersion: 'v4',
  provider: 'offline',
  modelId: 'offline',
  supportedUrls: {},
  async doGenerate({ prompt, abortSignal }: ModelCallOptions) {
    abortSignal?.throwIfAborted()
    const answer = reply(prompt)
    return { content: [contentOf(answer)], finishReason: finishOf(answer), usage: usageOf(prompt, answer), warnings: [] }
  },
  async doStream({ prompt, abortSignal }: ModelCallOptions) {
    abortSignal?.throwIfAborted()
    return { stream: streamOf(partsOf(prompt, reply(prompt)), abortSignal) }
  },
})

const contentOf = (answer: Reply) =>
  answer.kind === 'text'
    ? ({ type: 'text', text: answer.text } as const)
    : ({ type: 'tool-call', toolCallId: answer.id, toolName: answer.tool, input: answer.input } as const)

const finishOf = ({ kind }: Reply): ModelFinishReason => ({ unified: kind === 'text' ? 'stop' : 'tool-calls', raw: kind })

function usageOf(prompt: ModelPrompt, answer: Reply): ModelUsage {
  const input = promptTokens(prompt)
  const output = Math.ceil((answer.kind === 'text' ? answer.text.length : answer.tool.length + answer.input.length) / 4)
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  }
}

function partsOf(prompt: ModelPrompt, answer: Reply): readonly ModelStreamPart[] {
  const finish: ModelStreamPart = { type: 'finish', finishReason: finishOf(answer), usage: usageOf(prompt, answer) }
  const start: ModelStreamPart = { type: 'stream-start', warnings: [] }
  if (answer.kind === 'call') {
    const { id, tool, input } = answer
    return [
      start,
      { type: 'tool-input-start', id, toolName: tool },
      { type: 'tool-input-delta', id, delta: input },
      { type: 'tool-input-end', id },
      { type: 'tool-call', toolCallId: id, toolName: tool, input },
      finish,
    ]
  }
  const deltas = pieces(answer.text).map((delta): ModelStreamPart => ({ type: 'text-delta', id: '0', delta }))
  return [start, { type: 'text-start', id: '0' }, ...deltas, { type: 'text-end', id: '0' }, finish]
}

/** Splits text after words into at most `DELTAS_MAX` pieces; joined, they are the text. */
function pieces(text: string): string[] {
  const charsMin = text.length / DELTAS_MAX
  const found: string[] = []
  let piece = ''
  for (const [word] of text.matchAll(/\S+\s*|\s+/g)) {
    piece += word
    if (piece.length < charsMin) continue
    found.push(piece)
    piece = ''
  }
  if (piece) found.push(piece)
  return found
}

function streamOf(parts: readonly ModelStreamPart[], signal: AbortSignal | undefined): ReadableStream<ModelStreamPart> {
  let next = 0
  return new ReadableStream(
    {
      pull(controller) {
        if (signal?.aborted) return controller.error(signal.reason)
        const part = parts[next++]
        if (part) controller.enqueue(part)
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}
