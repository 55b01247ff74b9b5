/** Reads the conversation that a turn continues, and makes room in it before it outgrows the window. */
import { AppError, type Conversation, type GatewayText, type GatewayTexts, gatewayText, type ModelMessage, withFullStop } from '@sluice/sdk'
import { filesFit } from '../history/attached-files.ts'
import { fitsWindow } from '../history/history.ts'
import { OFFLINE } from '../model/call-model.ts'
import { endpointLimits, windowOf } from '../model/endpoint-limits.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import type { SummarizeDeps } from './summarize.ts'

/** The built-in model repeats what was said before, and reads no more than this. */
const OFFLINE_MESSAGES_MAX = 50

const NOTHING: Conversation = { upTo: 0, summary: undefined, messages: [] }

/** Rejects as the store does. */
export async function readConversation(scope: TurnScope): Promise<Conversation> {
  const { turn } = scope
  if (turn.session === null) return NOTHING
  if (isOffline(scope)) return turn.home.sessions.conversation(turn.session, scope.agent.max_history_messages ?? OFFLINE_MESSAGES_MAX)
  const { messagesMax } = windowOf(scope)
  // One message more than the limit shows that the limit is exceeded.
  return turn.home.sessions.conversation(turn.session, maySummarize(scope) ? messagesMax + 1 : messagesMax)
}

export interface RoomFor {
  readonly conversation: Conversation
  /** The messages of the turn. The summary of the older ones is noted on one of them. */
  readonly produced: ModelMessage[]
  /** True when the model has refused the length, whatever the estimate says. */
  readonly isRefused?: boolean
  /** Stores the messages of the turn with a new summary. */
  keep(): Promise<void>
}

export interface Room {
  readonly conversation: Conversation
  readonly isShorter: boolean
}

/**
 * Summarises the oldest messages if the conversation does not fit into the window: stored ones first, then those of a long turn. Resolves
 * to the conversation as it is then. Rejects with the reason of the turn's cancellation; the turn goes on when a summary fails.
 */
export async function makeRoom(deps: SummarizeDeps, scope: TurnScope, room: RoomFor): Promise<Room> {
  const { conversation, produced, isRefused = false } = room
  const { media } = endpointLimits(scope)
  // A summary replaces only the files of stored messages.
  const filesMayStay = ({ messages }: Conversation) => messages.length === 0 || filesFit([...messages, ...produced], media, deps.fileBytes)
  const fits = (now: Conversation) => fitsWindow(now, produced, windowOf(scope)) && filesMayStay(now)
  if (!maySummarize(scope) || (!isRefused && fits(conversation))) return { conversation, isShorter: false }
  const { summarizeSession, summarizeTurn } = await import('./summarize.ts')
  let now = conversation
  const { session } = scope.turn
  if (session !== null && conversation.messages.length > 0) {
    await summarizeSession(deps, scope, { ...conversation, id: session }, { produced, isRequested: !filesMayStay(conversation) })
    now = await readConversation(scope)
  }
  const isTurnShorter = !fits(now) && (await summarizeTurn(deps, scope, produced))
  if (isTurnShorter) await room.keep()
  return { conversation: now, isShorter: isTurnShorter || now.summary?.upTo !== conversation.summary?.upTo }
}

/** Tells whether a summary may be written. The built-in model is not a language model. */
const maySummarize = (scope: TurnScope): boolean => scope.agent.summarize_history && !isOffline(scope)

const isOffline = ({ registry, progress }: TurnScope): boolean => registry.models.labels[progress.entry]?.provider === OFFLINE

const COMMAND = /^\/compact(?:\s+([\s\S]{1,2000}))?$/i

/** Returns what matters to the writer of the command `/compact`; undefined for any other text. */
export function compactCommand(text: string): { readonly focus: string } | undefined {
  const found = COMMAND.exec(text.trim())
  return found ? { focus: found[1] ?? '' } : undefined
}

export interface CompactDeps extends SummarizeDeps {
  /** The texts for people that replace Sluice's own. */
  readonly texts?: (() => GatewayTexts) | undefined
}

/** Summarises the whole conversation at the request of a person. Resolves to the answer. */
export async function compactOnRequest(deps: CompactDeps, scope: TurnScope, focus: string): Promise<string> {
  const { session } = scope.turn
  const answer = (key: GatewayText, values?: { readonly count: number }) => gatewayText(key, deps.texts?.() ?? {}, values)
  const conversation = await readConversation(scope)
  if (session === null || conversation.messages.length === 0) return answer('nothing_to_compact')
  if (!maySummarize(scope)) return answer('compact_off')
  const { summarizeSession } = await import('./summarize.ts')
  const failure = await summarizeSession(deps, scope, { ...conversation, id: session }, { focus, isRequested: true })
  const { summary } = await readConversation(scope)
  if (!summary || summary.upTo === (conversation.summary?.upTo ?? 0)) {
    // A limit in dollars is told in its own words, as for any other turn. The words of a provider are not for people.
    const reason = failure instanceof AppError && failure.code === 'rate_limited' ? ` ${withFullStop(failure.message)}` : ''
    return `${answer('not_compacted')}${reason}`
  }
  return answer('compacted', { count: summary.upTo })
}
