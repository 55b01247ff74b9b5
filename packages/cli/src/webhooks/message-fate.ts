/** What became of a message that was sent as a provider sends it. */
import type { ReadyChannel } from '@sluice/runtime/configured-channels'
import { type InboxEntry, isAllowed, type Store, type TurnRow } from '@sluice/sdk'
import { type Answer, explainAnswer, isRefused, isTaken } from './exchange.ts'
import { type Following, findMessage, followMessage, isOver } from './follow-message.ts'

export interface Fate {
  readonly verdict: 'accepted' | 'duplicate' | 'taken' | 'denied' | 'ignored' | 'refused'
  /** The verdict in words, with what the operator can change. */
  readonly detail: string
  /** True of a refusal: it is what had to come. */
  readonly wanted?: true
  readonly entry?: InboxEntry
  readonly turn?: TurnRow
}

export interface SentMessage extends Following {
  readonly store: Pick<Store, 'inbox' | 'turns'>
  readonly ready: ReadyChannel
  readonly answer: Answer
  readonly sender: string
  /** The provider's id of it. */
  readonly id: string
  /** Why it has to be refused: it was spoilt on purpose, or nobody but the provider can prove it. */
  readonly refusal?: 'spoilt' | 'unverifiable'
  /** The last number given before it was sent. */
  readonly after: number
}

const REFUSALS = {
  spoilt: 'refused, as a spoilt request has to be',
  unverifiable: 'refused, as it has to be: only the provider can prove a request here, so the rest shows once it calls',
} as const

export async function messageFate(sent: SentMessage): Promise<Fate> {
  const { ready, answer, sender, store } = sent
  const { channel, section, allowKey } = ready
  if (sent.refusal && isRefused(answer)) return { verdict: 'refused', detail: REFUSALS[sent.refusal], wanted: true }
  if (!isTaken(answer)) return { verdict: 'refused', detail: explainAnswer(answer) }
  if (channel.listen) return { verdict: 'taken', detail: 'taken: it says that something came, and the daemon fetches what it is' }
  if (!isAllowed(channel.allow, sender, channel.normalise?.bind(channel), channel.matches?.bind(channel)))
    return { verdict: 'denied', detail: `dropped, because ${sender} may not use the agent: add it to ${allowKey} in [${section}]` }
  const row = await findMessage(store.inbox, channel.name, sent.id, sent.signal)
  if (!row) {
    const detail = 'nothing of it is in the store: the daemon took it for no message, or works on another data directory'
    return { verdict: 'ignored', detail }
  }
  const isNew = row.number > sent.after
  const entry = await followMessage(store.inbox, row.number, sent)
  const turn = entry?.turnId ? await store.turns.get(entry.turnId) : undefined
  return {
    verdict: isNew ? 'accepted' : 'duplicate',
    detail: `${isNew ? 'accepted as' : 'a duplicate of'} message ${row.number}`,
    ...(entry && { entry }),
    ...(turn && { turn }),
  }
}

export interface Expectation {
  readonly waitMs: number
  /** True: its answer cannot arrive. */
  readonly unanswerable: boolean
}

/** True if it arrived and, unless nobody waited for that, was answered to the end; or was refused as it had to be. */
export function isWell({ verdict, wanted, entry }: Fate, { waitMs, unanswerable }: Expectation): boolean {
  if (wanted || verdict === 'taken') return true
  if (verdict !== 'accepted' && verdict !== 'duplicate') return false
  if (!entry || entry.state === 'dead') return false
  return waitMs === 0 || (isOver(entry) && (unanswerable || entry.replies.every(({ state }) => state === 'sent')))
}
