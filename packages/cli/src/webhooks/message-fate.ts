/** What became of a message that was sent as a provider sends it. */
import type { ReadyChannel } from '@sluice/gateway/configured-channels'
import { type InboxEntry, isAllowed, type Store, type TurnRow } from '@sluice/sdk'
import { type Answer, explainAnswer, isTaken } from './exchange.ts'
import { type Following, findMessage, followMessage, isOver } from './follow-message.ts'

export interface Fate {
  readonly verdict: 'accepted' | 'duplicate' | 'denied' | 'ignored' | 'refused'
  /** The verdict in words, with what the operator can change. */
  readonly detail: string
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
  /** True: it was spoilt on purpose. */
  readonly spoilt: boolean
  /** The last number given before it was sent. */
  readonly after: number
}

export async function messageFate(sent: SentMessage): Promise<Fate> {
  const { ready, answer, sender, store } = sent
  const { channel, section, allowKey } = ready
  if (sent.spoilt && answer.status === 401) return { verdict: 'refused', detail: 'refused, as a spoilt request has to be' }
  if (!isTaken(answer)) return { verdict: 'refused', detail: explainAnswer(answer) }
  if (!isAllowed(channel.allow, sender, channel.normalise?.bind(channel), channel.matches?.bind(channel)))
    return { verdict: 'denied', detail: `dropped, because ${sender} may not use the agent: add it to ${allowKey} in [${section}]` }
  const row = await findMessage(store.inbox, channel.name, sent.id, sent.signal)
  if (!row) {
    const detail =
      'nothing of it is in the store: the daemon took it for no message, has to fetch it first, or works on another data directory'
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

/** True if it arrived and, unless nobody waited for that, was answered to the end. */
export function isWell({ verdict, entry }: Fate, waitMs: number): boolean {
  if (verdict !== 'accepted' && verdict !== 'duplicate') return false
  if (!entry || entry.state === 'dead') return false
  return waitMs === 0 || (isOver(entry) && entry.replies.every(({ state }) => state === 'sent'))
}
