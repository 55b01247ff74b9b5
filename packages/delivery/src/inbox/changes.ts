/**
 * Edits and deletions of messages. One that comes before the turn of its message begins changes the message; later, the next turn of the
 * session reads about it. A change may come before its message: webhooks keep no order, and a platform repeats unacknowledged events
 * after later ones.
 */
import type { LimitedClient } from '@sluice/agent'
import type { JobOutcome } from '@sluice/kit'
import type { Channel, Inbound, InboxEntry, MessageKind, OwnedStore } from '@sluice/sdk'
import { keepChanged } from './changed-words.ts'
import type { CommandLimit } from './command-limit.ts'
import { keepLateChange, keepsWords } from './late-changes.ts'
import { joinPieces } from './pieces.ts'
import { withMessage } from './read-message.ts'
import { isInRoom } from './rooms.ts'

/** The most changes that wait for their messages at the same time. */
export const EARLY_CHANGES_MAX = 100
/** The most of them that one sender has made. */
const EARLY_OF_SENDER_MAX = 20
/** How long a change waits for its message. */
const EARLY_MS = 120_000
const EARLY_RETRY_MS = 3000
/** How often a change is tried whose message has got another piece meanwhile. */
const ATTEMPTS_MAX = 5

/** True for the report of a deletion for which the platform names no sender, so that no allowlist can be asked. */
export const isUnsignedDeletion = ({ sender, changes }: Inbound): boolean => changes?.what === 'deleted' && sender === ''

/** A message that a change is about. */
export interface ChangedTarget extends Pick<Inbound, 'account' | 'id'> {
  readonly channel: string
  /** The conversation. */
  readonly to: string
  /** Who changed it. */
  readonly sender: string
}

/** The changes that came before their messages, by their numbers. They are tried again before the turn of their message begins. */
export class EarlyChanges {
  readonly #targets = new Map<number, ChangedTarget>()

  get isFull(): boolean {
    return this.#targets.size >= EARLY_CHANGES_MAX
  }

  /** Returns the changes of a message and of its pieces. A turn in a room reads other messages too: it gets the changes of all. */
  of(channel: string, message: Inbound): readonly number[] {
    const ids = new Set((message.pieces ?? [message]).map(({ id }) => id))
    const isFor = ({ channel: name, account, id, to }: ChangedTarget): boolean =>
      name === channel && account === message.account && (ids.has(id) || (isInRoom(message) && to === message.to.to))
    return [...this.#targets].flatMap(([number, target]) => (isFor(target) ? [number] : []))
  }

  /** Whether an earlier change of the same message waits: they are carried out in the order in which they came. */
  isBehind({ channel, account, id }: ChangedTarget, number: number): boolean {
    const isBefore = ([other, target]: readonly [number, ChangedTarget]): boolean =>
      other < number && target.id === id && target.channel === channel && target.account === account
    return [...this.#targets].some(isBefore)
  }

  /** Returns false if no more changes may wait. */
  add(target: ChangedTarget, number: number): boolean {
    const isBeyond = (): boolean => this.isFull || this.#ofSender(target) >= EARLY_OF_SENDER_MAX
    if (!this.#targets.has(number) && isBeyond()) return false
    this.#targets.set(number, target)
    return true
  }

  delete(number: number): void {
    this.#targets.delete(number)
  }

  #ofSender({ channel, sender }: ChangedTarget): number {
    return [...this.#targets.values()].filter((target) => target.channel === channel && target.sender === sender).length
  }
}

export interface RunningChange {
  readonly owned: OwnedStore
  readonly nowMs: number
  readonly early: EarlyChanges
  /** The channels that are ready. */
  readonly channels: readonly Channel[]
  /** See `InboxWorkerOptions`. */
  changesOverheard(report: Inbound, receivedAtMs: number): Promise<boolean>
  /** Called with the number of a message that has changed in the store. */
  onChanged(number: number): void
  /** Resolves to the principal of a message; to undefined while its channel is not there. */
  principalOf(message: Inbound): Promise<LimitedClient | undefined>
  /** Whether the rule of a room leaves out the person who changed a message of a session. */
  isLeftOut(report: Inbound, changed: { readonly session: string; readonly before: Inbound }): Promise<boolean>
  /** Bounds the edits of messages whose turn had begun. */
  readonly edits: Pick<CommandLimit, 'take'>
}

/**
 * Carries out the change that the message `number` reports, and ends the message. A change that comes before its message waits for it. After a
 * crash a change is carried out again, to the same end.
 */
export async function runChange(running: RunningChange, number: number, report: Inbound): Promise<JobOutcome> {
  const { owned, nowMs, early } = running
  const entry = await owned.inbox.get(number)
  if (!entry) return 'done'
  const { channel, account } = entry
  const target = { channel, account, id: report.changes?.message ?? '', to: report.to.to, sender: report.sender }
  const mayWait = entry.endedAtMs === null && nowMs - entry.receivedAtMs < EARLY_MS
  // Other changes of the conversation go on meanwhile.
  const later = { retryAtMs: nowMs + EARLY_RETRY_MS, leavesLane: true } as const
  if (mayWait && early.isBehind(target, number) && early.add(target, number)) return later
  const changed = entry.endedAtMs === null && report.changes ? await change(running, entry, report, report.changes) : undefined
  const isUnknown = changed?.outcome === 'unknown' && !(await running.changesOverheard(report, entry.receivedAtMs))
  if (mayWait && isUnknown && early.add(target, number)) return later
  early.delete(number)
  if (changed) await endChange(running, number, report, changed)
  return 'done'
}

/** These messages run no turn, so that a change of one has nothing to change. */
const WITHOUT_TURN: readonly (MessageKind | undefined)[] = ['approval_reply', 'change', 'command']

/**
 * The effect of a change on its message. `done`: the message has the new text, or has ended because it was deleted; the report of the
 * change has ended in the same commit. `begun`: the turn of the message had begun before, so that nothing was changed. `refused`: the
 * message is of another sender, has a newer edit, or runs no turn. `unknown`: no message has the id.
 */
type ChangedMessage =
  | { readonly outcome: 'done' | 'refused' | 'unknown' }
  | {
      readonly outcome: 'begun'
      readonly number: number
      /** The number of the message that has its words. */
      readonly whole: number
      readonly session: string
      readonly before: Inbound
    }

async function change(
  { owned, nowMs, channels, onChanged }: RunningChange,
  { number: report, channel, account }: InboxEntry,
  message: Inbound,
  changes: NonNullable<Inbound['changes']>,
): Promise<ChangedMessage> {
  const found = await owned.inbox.find(channel, { account, id: changes.message })
  if (!found) return { outcome: 'unknown' }
  const { message: before, session, kind } = await withMessage(channels, found)
  const isDeleted = changes.what === 'deleted'
  const mayBeOther = isDeleted && changes.by !== 'sender'
  if (!before || WITHOUT_TURN.includes(kind) || !(mayBeOther || message.sender === found.sender)) return { outcome: 'refused' }
  // Other messages may have joined this one.
  const own = before.pieces?.find(({ id }) => id === changes.message) ?? before
  const begun = { outcome: 'begun', number: found.number, whole: found.joinedTo ?? found.number, session, before: own } as const
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    // A piece is changed in the message that has its words.
    const row = await owned.inbox.get(begun.whole)
    const whole = row && row.turnId === null && row.endedAtMs === null ? (await withMessage(channels, row)).message : null
    if (!row || !whole) return begun
    const pieces = whole.pieces ?? [whole]
    const piece = pieces.find(({ id }) => id === changes.message)
    if (!piece) return begun
    // Edits may arrive in another order than they were made.
    if (!isDeleted && message.sentAtMs !== undefined && message.sentAtMs < (piece.editedAtMs ?? 0)) return { outcome: 'refused' }
    const left = pieces.flatMap((one) => (one === piece ? (isDeleted ? [] : [edited(piece, message)]) : [one]))
    const next = left.length === 0 ? null : joinPieces(whole, left)
    // An earlier turn may have answered it. The words stay in the row.
    if (next === null) await keepChanged(owned, session, row.number)
    const isDone = await owned.inbox.change(report, { number: row.number, was: whole, message: next, atMs: nowMs })
    onChanged(row.number)
    if (isDone) return { outcome: 'done' }
  }
  return begun
}

/** The message keeps its id, its time and where its reply goes. A person edits only own messages; a moderator may delete messages of others. */
function edited(
  { id, account, sender, to, sentAtMs, inReplyTo, addressed, group, quoted: quotedBefore, attachments: before }: Inbound,
  {
    text,
    typed,
    attachments: given,
    things,
    forwarded,
    quoted = quotedBefore,
    quotedFrom,
    ownBelow,
    unverified,
    sentAtMs: editedAtMs,
    changes,
  }: Inbound,
): Inbound {
  const attachments = changes?.only === 'text' ? before : given
  return {
    id,
    account,
    sender,
    to,
    text,
    ...(sentAtMs !== undefined && { sentAtMs }),
    ...(group && { group }),
    ...(editedAtMs !== undefined && { editedAtMs }),
    ...(inReplyTo !== undefined && { inReplyTo }),
    ...(addressed && { addressed }),
    ...(attachments && { attachments }),
    ...(things && { things }),
    ...(forwarded && { forwarded }),
    ...(quoted && { quoted }),
    ...(typed !== undefined && { typed }),
    ...(quotedFrom !== undefined && { quotedFrom }),
    ...(ownBelow && { ownBelow }),
    ...(unverified && { unverified }),
  }
}

async function endChange(
  { owned, nowMs, principalOf, isLeftOut, edits }: RunningChange,
  number: number,
  report: Inbound,
  changed: ChangedMessage,
): Promise<void> {
  if (changed.outcome === 'done') return
  if (changed.outcome === 'begun' && !keepsWords(changed.before, report)) await keepChanged(owned, changed.session, changed.whole)
  if (changed.outcome === 'begun' && report.changes && !(await isLeftOut(report, changed))) {
    const { what } = report.changes
    const client = await principalOf(changed.before)
    // Each message is deleted once.
    const isBounded = what === 'edited' && client !== undefined && client.standing !== 'operator'
    const exceeded = isBounded ? edits.take(client, number) : undefined
    if (exceeded) {
      await owned.inbox.limit(number, { error: `edits: more than ${exceeded.value} within ten minutes`, atMs: nowMs })
      return
    }
    await keepLateChange(owned, { ...changed, report, reported: number, what, standing: client?.standing ?? 'unverified' })
  }
  // No turn read the words of a message that never came.
  if (changed.outcome === 'unknown') await owned.inbox.drop(number, nowMs)
  else await owned.inbox.done(number, nowMs)
}
