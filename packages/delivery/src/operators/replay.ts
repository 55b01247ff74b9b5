/** Replays or discards a message or a reply by its number. A row that cannot be replayed or discarded is refused with the reason. */
import { AppError, type Discard, type InboxState, type InboxStore, type OutboxState, type OutboxStore } from '@sluice/sdk'

const CHANGED = 'has changed at this moment; look at it again'

/** Completes the sentence "Message 17 …". */
const WHY_NOT_INBOX: Readonly<Record<InboxState, string>> = {
  pending: 'waits for its turn as it is',
  running: 'is running right now',
  done: CHANGED,
  dead: CHANGED,
  limited: CHANGED,
  discarded: CHANGED,
}

const GIVEN_UP: readonly OutboxState[] = ['dead', 'ambiguous', 'discarded']

/** Completes the sentence "Reply 9 …". */
const WHY_NOT_OUTBOX: Readonly<Record<OutboxState, string>> = {
  queued: 'is about to be sent as it is',
  failed: 'is about to be sent again as it is',
  sending: 'is being sent right now',
  sent: 'has been sent: the provider has it',
  ambiguous: CHANGED,
  dead: CHANGED,
  discarded: CHANGED,
}

export const unknownMessage = (number: number | string): AppError => new AppError('not_found', `There is no message ${number} in the inbox`)
export const unknownReply = (number: number | string): AppError => new AppError('not_found', `There is no reply ${number} in the outbox`)

/** Throws `not_found` for an unknown number, `conflict` for a message that cannot run again. */
export async function replayMessage(inbox: InboxStore, number: number): Promise<void> {
  if (await inbox.replay(number)) return
  const entry = await inbox.get(number)
  if (!entry) throw unknownMessage(number)
  const hasEnded = entry.endedAtMs !== null
  throw notReplayed(`Message ${number}`, hasEnded && entry.message === null && entry.raw === null ? undefined : WHY_NOT_INBOX[entry.state])
}

/** Throws `not_found` for an unknown number, `conflict` for a reply that cannot be sent again. */
export async function replayReply(outbox: OutboxStore, number: number): Promise<void> {
  if (await outbox.replay(number)) return
  const row = await outbox.get(number)
  if (!row) throw unknownReply(number)
  const isGivenUp = GIVEN_UP.includes(row.state)
  throw notReplayed(`Reply ${number}`, isGivenUp && row.text === null ? undefined : WHY_NOT_OUTBOX[row.state])
}

const notReplayed = (what: string, why = 'is too old: its content is no longer kept'): AppError =>
  new AppError('conflict', `${what} ${why}`)

/** Throws `not_found` for an unknown number, `conflict` for a message in another state. */
export async function discardMessage(inbox: InboxStore, number: number, discard: Discard): Promise<void> {
  if (await inbox.discard(number, discard)) return
  const entry = await inbox.get(number)
  if (!entry) throw unknownMessage(number)
  throw new AppError('conflict', `Message ${number} is ${entry.state}: only a dead or limited message can be discarded`)
}

/** Throws `not_found` for an unknown number, `conflict` for a reply in another state. */
export async function discardReply(outbox: OutboxStore, number: number, discard: Discard): Promise<void> {
  if (await outbox.discard(number, discard)) return
  const row = await outbox.get(number)
  if (!row) throw unknownReply(number)
  throw new AppError('conflict', `Reply ${number} is ${row.state}: only a dead or ambiguous reply can be discarded`)
}
