/**
 * The port of durable delivery (docs/contract.md#delivery). The inbox keeps a message until its turn has ended, and the outbox
 * keeps a reply until the platform has it. A method that writes resolves when its change is on stable storage. Each row has a
 * number that grows and is never used again.
 */

import type { Address, Inbound } from '../channel/channel.ts'
import type { NewReply } from '../channel/reply.ts'
import type { ModelMessage } from '../tool/model.ts'
import type { HeldBack, LimitCause, NoticeCause } from './admission-store.ts'
import type { ApprovalKey } from './approval-store.ts'

/**
 * `pending`: waits for a turn or another attempt. `dead`: a dead letter that an operator can replay. `limited`: a limit refused it, and
 * an operator can replay it. `discarded`: an operator decided not to replay it.
 */
export type InboxState = 'pending' | 'running' | 'done' | 'dead' | 'limited' | 'discarded'

/** Who discards a dead letter, for the audit log. */
export interface Discard {
  readonly atMs: number
  /** As in `SopEvent.by`. */
  readonly by: string
}

/**
 * The class of a message, decided once at intake. `approval_reply`: the message answers an approval. `command`: the message is a
 * command to Sluice itself, such as `/stop`. `change`: the sender edited or deleted an earlier message. `procedure_event`: a procedure
 * has a trigger for its path; the message becomes a turn when no procedure accepts it. `turn`: the message is for the agent.
 */
export type MessageKind = 'approval_reply' | 'change' | 'command' | 'procedure_event' | 'turn'

/** One request and its messages. */
export interface Arrival {
  readonly channel: string
  /** What verified the request. */
  readonly verdict: string
  /**
   * The body of the request, from which the channel can parse the messages again: the only copy that is stored. Null when the messages
   * themselves are stored.
   */
  readonly raw: Uint8Array | null
  readonly receivedAtMs: number
  /** The nonce of the request. A request with a nonce that was used before `untilMs` is refused. */
  readonly nonce?: { readonly value: string; readonly untilMs: number }
  /** The span of the request, as `formatTraceContext` writes it. Present while an observer traces. */
  readonly trace?: string | undefined
  readonly messages: readonly {
    readonly message: Inbound
    /** The session of the turn, which is also the lane. */
    readonly session: string
    /** Absent when the worker must classify the message. */
    readonly kind?: MessageKind
    /** The approval that a text answers. A pressed button names its approval itself. */
    readonly approval?: ApprovalKey
  }[]
}

/** A waiting row without its content: enough to enqueue it in its lane. */
export interface Waiting {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly lane: string
  /** The earliest time of the next attempt. */
  readonly atMs: number
  /** The number of interrupted attempts: started, and neither ended nor failed. */
  readonly interruptions: number
}

/** Since when a listed row waits. */
export interface WaitingSince {
  /** The time of its receipt or last replay, from which the time limit of retries counts. */
  readonly sinceMs: number
}

/** The waiting rows with a number above `after`. */
export interface WaitingPage {
  readonly after: number
  readonly limit: number
  /** Rows of these channels are left out. */
  readonly except?: readonly string[]
}

/** A waiting message. */
export interface WaitingMessage extends Waiting {
  readonly sender: string
  /** Absent for a replayed message and for one of an earlier release, which the worker classifies. */
  readonly kind?: MessageKind
}

/** A message whose attempt begins. */
export interface StartedMessage {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly session: string
  readonly message: Inbound
  /** The class that was stored with the message. */
  readonly approval?: ApprovalKey
  readonly receivedAtMs: number
  /** The time of its receipt or last replay, from which the time limit of retries counts. */
  readonly sinceMs: number
  readonly turnId: string
  /** The attempts that count, with this one. */
  readonly attempts: number
  /** The checkpoint of an interrupted attempt. */
  readonly checkpoint: readonly ModelMessage[]
  /** The platform's id of the draft message of an earlier attempt. */
  readonly draft: string | null
  /** The message as it arrived. */
  readonly trace?: string
}

/** A message whose every attempt was interrupted and that has no attempt left. */
export interface SpentMessage {
  readonly spent: true
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly turnId: string | null
  /** The number of starts. */
  readonly attempts: number
  /** The provider's id of the message that shows the unfinished reply. */
  readonly draft: string | null
}

export interface DeliveryFilter {
  readonly limit: number
  /** Only rows with a smaller number, for the next page. */
  readonly before?: number
  readonly state?: string
  readonly channel?: string
}

/** A message as lists show it. */
export interface InboxRow {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly messageId: string
  readonly sender: string
  readonly session: string
  readonly state: InboxState
  readonly attempts: number
  readonly receivedAtMs: number
  readonly nextAtMs: number | null
  readonly endedAtMs: number | null
  readonly turnId: string | null
  /** The error of the last failed attempt, or why the message ended without an answer; null when it is done otherwise. */
  readonly error: string | null
}

export interface InboxEntry extends InboxRow {
  /** Absent for a replayed message and for one of an earlier release. */
  readonly kind?: MessageKind
  readonly verdict: string
  /** The body of the request, with all its messages; null when none was stored, and after retention deleted it. */
  readonly raw: Uint8Array | null
  /** The stored message; null when only `raw` is stored, and after retention deleted it. A stored message replaces the one in `raw`. */
  readonly message: Inbound | null
  /** The number of the message that got its words, as `MessageJoin` says. */
  readonly joinedTo?: number
  /** The platform's id of the message that shows the reply while it is written. */
  readonly draft?: string
  /** The message as it arrived. */
  readonly trace?: string
  /** The replies in order. */
  readonly replies: readonly OutboxRow[]
}

/** A failed attempt that is followed by another. */
export interface RetriedAttempt {
  readonly error: string
  /** The earliest time of the next attempt. */
  readonly atMs: number
  /** True when the attempt does not count, because the other side was not available. */
  readonly uncounted?: boolean
  /** For a reply: true when it may have arrived, so that the next attempt is marked as a repeat. */
  readonly repeats?: boolean
  /** The notice that the sender gets meanwhile. */
  readonly news?: MessageNews
}

/** A notice that is queued only if it is news: no record of the same client and cause was made within `quietMs`. */
export interface MessageNews {
  readonly held: HeldBack<LimitCause | NoticeCause>
  readonly quietMs: number
  readonly notice: readonly NewReply[]
}

/** A message that ends without an answer. */
export interface RefusedMessage {
  readonly error: string
  readonly atMs: number
  readonly news?: MessageNews
}

/** Messages whose words another message or its turn gets. */
export interface MessageJoin {
  /** The message that gets them. */
  readonly number: number
  /** What gets them: the message, whose turn has not begun, or else its running turn, whose checkpoint has the words. */
  readonly into:
    | { readonly was: Inbound; readonly joined: Inbound }
    | { readonly turnId: string; readonly messages: readonly ModelMessage[] }
  /** The messages with their words as they were read. */
  readonly pieces: readonly { readonly number: number; readonly message: Inbound }[]
  readonly atMs: number
}

/** The change of an earlier message. */
export interface MessageChange {
  /** The number of the changed message. */
  readonly number: number
  /** The message as it was read; nothing is changed if it has changed since. Absent: it is changed anyway. */
  readonly was?: Inbound
  /** The message that replaces it; null when it was deleted. */
  readonly message: Inbound | null
  readonly atMs: number
}

/** An unfinished message of a session. */
export interface SessionMessage {
  readonly number: number
  readonly sender: string
  /** Absent as in `WaitingMessage`. */
  readonly kind?: MessageKind
  /** What verified its request. */
  readonly verdict: string
  readonly receivedAtMs: number
  /** Null until its turn has begun. A message with a turn that does not run waits to be tried again. */
  readonly turnId: string | null
  readonly isRunning: boolean
}

export interface InboxStore {
  /**
   * Stores one request. Resolves to `replayed` when its nonce was used before, and then stores nothing; else to one number for
   * each message, in order, `null` for a message whose (channel, account, id) is known.
   */
  keep(arrival: Arrival): Promise<'replayed' | readonly (number | null)[]>
  /**
   * Tells for each message whether its id is known. Use it only for requests that would be refused, because it may read the disk
   * for each message.
   */
  known(channel: string, messages: readonly Pick<Inbound, 'account' | 'id'>[]): Promise<readonly boolean[]>
  /**
   * Begins an attempt. `turnId` names the turn when the message has none yet. Resolves to undefined when the message need not run.
   * After `startsMax` starts it begins nothing and does not change the message. `message` is the message where none is stored; a stored
   * one, such as after an edit, is used instead.
   */
  start(number: number, turnId: string, startsMax: number, message?: Inbound): Promise<StartedMessage | SpentMessage | undefined>
  /** Records a failed attempt; another follows, not before `atMs`. Resolves to the outbox numbers of the notice. */
  retry(number: number, failed: RetriedAttempt): Promise<readonly number[]>
  /** Records an attempt that a stop of the daemon interrupted and that does not count. */
  release(number: number): Promise<void>
  /**
   * Ends a message without a turn, such as a reply to an approval that was decided before. A turn that was begun for it is aborted.
   * The same commit queues the replies, but only in the call that ends the message. Resolves to their numbers. `reason` says why a message that
   * asked for an answer gets none; lists show it as the error.
   */
  done(number: number, atMs: number, replies?: readonly NewReply[], reason?: string): Promise<readonly number[]>
  /**
   * Ends a message that did nothing, such as the change of a message that never came, and deletes its content. A request that another
   * message needs, which is not done, stays.
   */
  drop(number: number, atMs: number): Promise<void>
  /**
   * Ends a message that a limit refuses, without a turn. The same commit records who is held back, as `AdmissionStore.hold` does, and
   * queues the notice if that is news. Resolves to whether it is, and to the outbox numbers of the notice.
   */
  limit(number: number, refused: RefusedMessage): Promise<{ readonly isNews: boolean; readonly replies: readonly number[] }>
  /** Stores the platform's id of the draft message, so that a later attempt continues with it. */
  draft(number: number, providerId: string): Promise<void>
  /** Stores the message with what its attempts have read of its files. Changes nothing unless the turn is that of the message, which has not ended. */
  keepRead(number: number, turnId: string, message: Inbound): Promise<void>
  /** Makes the message a dead letter; its turn has failed. The same commit queues the notice if it is news. Resolves to the outbox numbers of the notice. */
  markDead(number: number, failed: RefusedMessage): Promise<readonly number[]>
  /** Lists rows, newest first. */
  list(filter: DeliveryFilter): Promise<InboxRow[]>
  get(number: number): Promise<InboxEntry | undefined>
  /** Resolves to the message of a channel that has this account and id; undefined when none has. */
  find(channel: string, message: Pick<Inbound, 'account' | 'id'>): Promise<InboxEntry | undefined>
  /**
   * Carries out the change that the message `number` reports, and ends the report in the same commit. Resolves to false, and changes
   * nothing, when the turn of the changed message has begun or the message has ended.
   */
  change(number: number, change: MessageChange): Promise<boolean>
  /**
   * Gives the words of messages to another one, and ends the messages as done in the same commit. Resolves to false, and changes nothing,
   * when one of them has changed or ended, or its turn has begun.
   */
  join(join: MessageJoin): Promise<boolean>
  /** Lists the unfinished messages of a session, in their order. */
  ofSession(session: string): Promise<readonly SessionMessage[]>
  /** Makes an ended message run again in a new turn, and the messages whose words its turn got while it ran. Resolves to false in any other state, or when its content was deleted. */
  replay(number: number): Promise<boolean>
  /** Makes a dead or limited message `discarded`, and records that in the audit log. Resolves to false in any other state. */
  discard(number: number, discard: Discard): Promise<boolean>
  /** Counts the rows in each state except `done`, `limited` and `discarded`. */
  counts(): Promise<Readonly<Record<Exclude<InboxState, 'done' | 'limited' | 'discarded'>, number>>>
  /** Resolves to the time at which the oldest unfinished message was received; null without one. */
  oldestWaitingMs(): Promise<number | null>
}

/** The inbox as the holder of a lease uses it. */
export interface OwnedInboxStore extends InboxStore {
  /**
   * Lists messages to run in the shards of the lease, oldest first, with a number above `after`, including `running` ones that an
   * earlier holder left.
   */
  waiting(page: WaitingPage): Promise<(WaitingMessage & WaitingSince)[]>
}

/**
 * `queued`: not tried yet. `sending`: a request is in progress. `failed`: not sent, another attempt follows. `sent`: the platform
 * has the reply. `ambiguous`: the reply may have been sent; an operator decides. `dead`: not sent and not retried. `discarded`: an
 * operator decided not to send it again.
 */
export type OutboxState = 'queued' | 'sending' | 'failed' | 'sent' | 'ambiguous' | 'dead' | 'discarded'

/** The error of a reply that a stop of the daemon interrupted while it was sent. */
export const INTERRUPTED_SEND = 'The daemon stopped while this was being sent.'

/** A reply whose attempt begins. */
export interface StartedReply extends NewReply {
  readonly number: number
  /** The time when it was queued or last replayed, from which the time limit of retries counts. */
  readonly sinceMs: number
  /** The attempts that count, with this one. */
  readonly attempts: number
  /** Whether it is a prompt of an approval that is still pending. It may be sent twice, because the first decision wins. */
  readonly asks?: true
}

export interface OutboxRow {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly to: Address
  readonly text: string | null
  readonly part: number
  readonly parts: number
  readonly state: OutboxState
  readonly attempts: number
  readonly createdAtMs: number
  readonly nextAtMs: number | null
  readonly endedAtMs: number | null
  /** The platform's id of the sent message. */
  readonly providerId: string | null
  /** Whether it was sent again after an answer that does not exclude that it had arrived. */
  readonly repeated: boolean
  /** The error of the last failed attempt; null when the reply is sent. */
  readonly error: string | null
  readonly clientId: string
  /** The number of the inbox message that the reply answers. */
  readonly inbox: number | null
  readonly turnId: string | null
}

export interface OutboxStore {
  /** Queues messages that are not replies of a turn. Resolves to their numbers. */
  add(replies: readonly NewReply[]): Promise<readonly number[]>
  /** Queues a notice and records it in one commit. Resolves to its numbers, or to undefined, without queueing anything, when it reports no news. */
  addNews(news: MessageNews): Promise<readonly number[] | undefined>
  /** Begins an attempt durably, before anything is sent. Resolves to undefined when the reply need not be sent. */
  start(number: number): Promise<StartedReply | undefined>
  sent(number: number, sent: { readonly providerId: string; readonly atMs: number }): Promise<void>
  /** Records that the reply was not sent; another attempt follows, not before `atMs`. */
  retry(number: number, failed: RetriedAttempt): Promise<void>
  /** Makes the reply `dead` or `ambiguous`. `dead` includes the later parts of the same reply. */
  giveUp(number: number, failed: { readonly state: 'ambiguous' | 'dead'; readonly error: string; readonly atMs: number }): Promise<void>
  /**
   * Makes a sent reply dead, of which the platform reported later that it did not deliver it. Resolves to its number; undefined if no sent
   * reply of the channel has this id.
   */
  undelivered(channel: string, providerId: string, failed: { readonly error: string; readonly atMs: number }): Promise<number | undefined>
  /** Turns an edit into a new message, because the other message can no longer be edited. */
  sendInstead(number: number): Promise<void>
  /** Lists rows, newest first. */
  list(filter: DeliveryFilter): Promise<OutboxRow[]>
  get(number: number): Promise<OutboxRow | undefined>
  /** Resolves to the newest of the sent messages of a channel that have this platform id; several may where each conversation numbers its own. */
  sentAs(channel: string, providerId: string, limit: number): Promise<OutboxRow[]>
  /**
   * Makes a dead, ambiguous or discarded reply due again with the same client id, with the later parts that died with it. Resolves to
   * false in any other state, or when its text was deleted.
   */
  replay(number: number): Promise<boolean>
  /**
   * Makes a dead or ambiguous reply `discarded`, with the later parts that died with it, and records that in the audit log. Resolves to
   * false in any other state.
   */
  discard(number: number, discard: Discard): Promise<boolean>
  /** Counts the rows in each state except `sent` and `discarded`. */
  counts(): Promise<Readonly<Record<Exclude<OutboxState, 'sent' | 'discarded'>, number>>>
  /** Resolves to the time at which the oldest reply to send was queued; null without one. */
  oldestWaitingMs(): Promise<number | null>
}

/** The outbox as the holder of a lease uses it. */
export interface OwnedOutboxStore extends OutboxStore {
  /**
   * Recovers replies in the shards of the lease that an earlier holder left while they were sent: edits, and replies of channels
   * that drop repeats, become `failed` and due; others become `ambiguous`. Resolves to the numbers of the ambiguous ones.
   */
  recover(options: { readonly repeatable: readonly string[]; readonly atMs: number }): Promise<readonly number[]>
  /** Lists replies to send in the shards of the lease, oldest first, with a number above `after`. */
  waiting(page: WaitingPage): Promise<(Waiting & WaitingSince)[]>
}
