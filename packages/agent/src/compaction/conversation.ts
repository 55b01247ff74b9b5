/** Reads the conversation that a turn continues. One that does not fit into the window is summarised first. */
import type { Conversation } from '@sluice/sdk'
import { fitsWindow } from '../history/history.ts'
import { OFFLINE } from '../model/call-model.ts'
import { windowOf } from '../model/endpoint-limits.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import type { SummarizeDeps } from './summarize.ts'

const NOTHING: Conversation = { upTo: 0, summary: undefined, messages: [] }

/** Rejects as the store does, or with the reason of the turn's cancellation. The turn goes on when a summary fails. */
export async function readConversation(deps: SummarizeDeps, scope: TurnScope): Promise<Conversation> {
  const { turn, agent } = scope
  if (turn.session === null) return NOTHING
  const { sessions } = turn.home
  const { max_history_messages: messagesMax } = agent
  if (maySummarize(scope)) {
    // One message more than the window shows that the window is too small.
    const conversation = await sessions.conversation(turn.session, messagesMax + 1)
    if (fitsWindow(conversation, turn.text, windowOf(scope))) return conversation
    const { summarizeSession } = await import('./summarize.ts')
    await summarizeSession(deps, scope, { ...conversation, id: turn.session })
  }
  return sessions.conversation(turn.session, messagesMax)
}

/** Tells whether a summary may be written. The built-in model is not a language model. */
const maySummarize = ({ agent, registry, progress }: TurnScope): boolean =>
  agent.summarize_history && registry.models.labels[progress.entry]?.provider !== OFFLINE
