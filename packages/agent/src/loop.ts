/** One turn's work: ask the model, run the tools it calls, ask again with their results, until it answers in words. */
import type { ModelMessage, TurnStore } from '@sluice/sdk'
import type { AskModel } from './ask-model.ts'
import { fitConversation } from './history.ts'
import type { ToolCall } from './model-reply.ts'
import { Repeats } from './repeats.ts'
import { systemPrompt } from './system-prompt.ts'
import type { PreparedCall, ToolExecutor, ToolResultPart } from './tool-call.ts'
import type { TurnScope } from './turn-scope.ts'

export interface LoopDeps {
  readonly askModel: AskModel
  readonly tools: ToolExecutor
  readonly turns: Pick<TurnStore, 'checkpoint'>
}

export interface LoopResult {
  readonly text: string
  /** What the turn adds to its session: the person's message, tool calls with their results, the answer. */
  readonly messages: readonly ModelMessage[]
}

/** So many calls of one reply are run; the rest are told to come again. */
const CALLS_PER_REPLY_MAX = 32

/**
 * Runs the turn to its answer. A turn that is kept by the store is checkpointed with each round of results and begins where
 * its last checkpoint ends: finished calls are not run again, those cut before the checkpoint are.
 */
export async function runLoop(deps: LoopDeps, scope: TurnScope, history: readonly ModelMessage[]): Promise<LoopResult> {
  const { turn, agent } = scope
  const { messagesMax, tokensMax } = { messagesMax: agent.max_history_messages, tokensMax: agent.max_history_tokens }
  const system: ModelMessage = { role: 'system', content: systemPrompt(scope.registry, agent) }
  const asked: ModelMessage = { role: 'user', content: [{ type: 'text', text: turn.text }] }
  const produced: ModelMessage[] = turn.checkpoint.length > 0 ? [...turn.checkpoint] : [asked]
  const promptWith = (...last: ModelMessage[]) => [system, ...fitConversation(history, [...produced, ...last], { messagesMax, tokensMax })]

  const repeats = new Repeats()
  recall(turn.checkpoint, scope, repeats)
  for (;;) {
    const limit = limitReached(scope)
    if (limit !== undefined) {
      const reply = await deps.askModel(scope, { prompt: promptWith(summaryRequest(limit)), mayCallTools: false })
      const text = reply.text.trim() === '' ? `The turn was stopped: ${limit}.` : reply.text
      produced.push({ role: 'assistant', content: [{ type: 'text', text }] })
      return { text, messages: produced.map(withoutPrivateParts) }
    }
    const reply = await deps.askModel(scope, { prompt: promptWith(), mayCallTools: true })
    produced.push({ role: 'assistant', content: reply.content })
    if (reply.calls.length === 0) return { text: reply.text, messages: produced.map(withoutPrivateParts) }
    produced.push({ role: 'tool', content: await runCalls(deps.tools, scope, reply.calls, repeats) })
    if (turn.kept) await deps.turns.checkpoint(turn.id, produced)
  }
}

/** Counts what a cut turn had done before its checkpoint towards the limits of the whole. */
function recall(checkpoint: readonly ModelMessage[], { progress }: TurnScope, repeats: Repeats): void {
  for (const message of checkpoint) {
    if (message.role !== 'assistant') continue
    progress.iterations++
    for (const part of message.content) if (part.type === 'tool-call') repeats.count(part.toolName, part.input ?? null)
  }
}

/** Why the turn may not go on, as the end of a sentence. */
function limitReached({ agent, progress }: TurnScope): string | undefined {
  const { inputTokens, outputTokens } = progress.usage
  if (progress.iterations >= agent.max_iterations) return `all ${agent.max_iterations} steps of this turn are used up`
  if (inputTokens + outputTokens >= agent.max_turn_tokens) return `all ${agent.max_turn_tokens} tokens of this turn are used up`
  return undefined
}

const summaryRequest = (limit: string): ModelMessage => ({
  role: 'user',
  content: [
    {
      type: 'text',
      text: `(No more tools can be called: ${limit}. Answer now with what you have found and done, and say what is left to do.)`,
    },
  ],
})

/** Looks run side by side; as soon as one of the calls does more, all run one after another, as they were written. */
async function runCalls(tools: ToolExecutor, scope: TurnScope, calls: readonly ToolCall[], repeats: Repeats): Promise<ToolResultPart[]> {
  const prepared = calls.map((call, index): PreparedCall => {
    const ready = tools.prepare(scope, call, repeats)
    return index < CALLS_PER_REPLY_MAX ? ready : { ...ready, refusal: `Not run: a reply may call at most ${CALLS_PER_REPLY_MAX} tools.` }
  })
  if (prepared.every(({ risk }) => risk === 'read')) return Promise.all(prepared.map((call) => tools.run(scope, call)))
  const results: ToolResultPart[] = []
  for (const call of prepared) results.push(await tools.run(scope, call))
  return results
}

/** Thinking and marks that only mean something to the provider that made them are of use in their own turn alone. */
function withoutPrivateParts(message: ModelMessage): ModelMessage {
  if (message.role !== 'assistant') return message
  const content = message.content.filter((part) => part.type !== 'reasoning').map(({ providerOptions: _, ...part }) => part)
  return { role: 'assistant', content: content as typeof message.content }
}
