/** Continues an answer that the output limit of the model has cut. */
import { AppError, type ModelMessage } from '@sluice/sdk'
import type { TurnScope } from '../turn/turn-scope.ts'
import { endpointLimits } from './endpoint-limits.ts'
import type { AssistantPart, ModelReply } from './model-reply.ts'

/** A model that has not ended after so many continuations seldom ends at all. */
const CONTINUATIONS_MAX = 2

const CONTINUE: ModelMessage = {
  role: 'user',
  content: [
    {
      type: 'text',
      text: '(Your last message was cut off by the output limit. Continue exactly where it stopped, even within a word. Repeat nothing.)',
    },
  ],
}

/** Asks the model with these messages at the end of the conversation. */
type Ask = (...last: ModelMessage[]) => Promise<ModelReply>

/**
 * Returns the reply, joined with its continuations if it was cut within its text. A continuation that fails, and one that
 * `mayContinue` does not allow, leaves the reply as it is. Rejects only with the reason of the turn's cancellation.
 */
export async function completeReply(scope: TurnScope, reply: ModelReply, ask: Ask, mayContinue: () => boolean): Promise<ModelReply> {
  let joined = reply
  for (let count = 0; count < CONTINUATIONS_MAX && isCutText(joined) && mayContinue(); count++) {
    if (endpointLimits(scope).max_output_tokens !== undefined) break
    try {
      joined = join(joined, await ask({ role: 'assistant', content: joined.content }, CONTINUE))
    } catch (error) {
      scope.turn.cancellation.throwIfCancelled()
      if (!(error instanceof AppError)) throw error
      break
    }
  }
  return joined
}

/** Tells whether the text of a reply is cut. A cut call or cut reasoning cannot be continued. */
const isCutText = ({ finish, calls, content }: ModelReply): boolean =>
  finish === 'length' && calls.length === 0 && content.at(-1)?.type === 'text'

const join = (begun: ModelReply, rest: ModelReply): ModelReply => ({
  ...rest,
  text: begun.text + rest.text,
  content: joinContent(begun.content, rest.content),
})

/** Joins the texts on both sides of the break, unless their provider has marked one of them. */
function joinContent(begun: readonly AssistantPart[], rest: readonly AssistantPart[]): AssistantPart[] {
  const last = begun.at(-1)
  const [first, ...others] = rest
  if (last?.type !== 'text' || first?.type !== 'text' || last.providerOptions || first.providerOptions) return [...begun, ...rest]
  return [...begun.slice(0, -1), { type: 'text', text: last.text + first.text }, ...others]
}
