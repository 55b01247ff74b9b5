/**
 * The port of durable delivery: the inbox keeps what came in until its turn has ended, the outbox what goes out until the
 * provider has it. As everywhere in the store, a method that writes resolves once its change is on stable storage. Rows are
 * known by a number that grows and is never given again.
 */
import type { ApprovalKey } from './approval-store.ts'
import type { Address, Button, Inbound } from './channel.ts'
import type { ModelMessage } from './model.ts'

/** `pending`: waits for its turn, or for another attempt; `dead`: given up, and left to the operator. */
export type InboxState = 'pending' | 'running' | 'done' | 'dead'

/**
 * What a message is, decided once when it arrives. `approval_reply`: it answers an approval. `procedure_event`: a procedure has a
 * trigger for its path; if no procedure takes it, it is a turn. `turn`: it is for the agent.
 */
export type MessageKind = 'approval_reply' | 'procedure_event' | 'turn'

/** One request, and what is to be kept of it. */
export interface Arrival {
  readonly channel: string
  /** What proved where it comes from. */
  readonly verdict: string
  readonly raw: Uint8Array
  readonly receivedAtMs: number
  /** Refused if it was kept before and its time is not over; `untilMs` is its end. */
  readonly nonce?: { readonly value: string; readonly untilMs: number }
  /** The span that received it, as `formatTraceContext` writes it; while an observer traces. */
  readonly trace?: string | undefined
  readonly messages: readonly {
    readonly message: Inbound
    /** The session its turn belongs to, which is also its lane. */
    readonly session: string
    /** Absent: the message is classified when it is worked on. */
    readonly kind?: MessageKind
    /** The approval that a text answers; the reply of a pressed button names its approval itself. */
    readonly approval?: ApprovalKey
  }[]
}

/** What waits, without its content: enough to put it in its lane. */
export interface Waiting {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly lane: string
  /** Not before. */
  readonly atMs: number
  /** How often it was started and neither ended nor failed, as when the daemon is killed. */
  readonly cuts: number
}

/** A message that waits. */
export interface WaitingMessage extends Waiting {
  /** Absent: the message was replayed, or kept by an earlier release, and is classified when it is worked on. */
  readonly kind?: MessageKind
}

/** A message whose turn begins. */
export interface StartedMessage {
  readonly number: number
  readonly channel: string
  readonly account: string
  readonly session: string
  readonly message: Inbound
  /** As kept with the message. */
  readonly approval?: ApprovalKey
  readonly receivedAtMs: number
  /** When it was received or last replayed: it is retried for a limited time from then on. */
  readonly sinceMs: number
  readonly turnId: string
  /** Attempts that count, this one included. */
  readonly attempts: number
  /** What an earlier attempt had produced when it was cut. */
  readonly checkpoint: readonly ModelMessage[]
  /** The provider's id of the message an earlier attempt showed its reply in. */
  readonly draft: string | null
  /** As it arrived. */
  readonly trace?: string
}

/** A message that was started as often as it may be, and neither ended nor was given up: every start was cut. */
export interface SpentMessage {
  readonly spent: true
  readonly number: number
  readonly channel: string
  /** Starts so far. */
  readonly attempts: number
}

export interface DeliveryFilter {
  readonly limit: number
  /** Only rows with a smaller number: the page after one that ended there. */
  readonly before?: number
  readonly state?: string
  readonly channel?: string
}

/** As the inspector lists it. */
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
  /** Of the last attempt that failed; null once it is done. */
  readonly error: string | null
}

export interface InboxEntry extends InboxRow {
  readonly verdict: string
  /** Null once retention has dropped it. For a message that came in a batch, the whole batch. */
  readonly raw: Uint8Array | null
  readonly message: Inbound | null
  /** As it arrived. */
  readonly trace?: string
  /** The replies, in their order. */
  readonly replies: readonly OutboxRow[]
}

/** An attempt that failed and is followed by another. */
export interface RetriedAttempt {
  readonly error: string
  /** The next attempt starts no earlier. */
  readonly atMs: number
  /** The attempt does not count: the other side was away, and nothing was done. */
  readonly uncounted?: boolean
}

export interface InboxStore {
  /**
   * Keeps one request. Resolves to `replayed` if its `once` was used before, and nothing of it is kept then; else to one
   * number per message, in order, `null` for one whose (channel, account, id) is known.
   */
  keep(arrival: Arrival): Promise<'replayed' | readonly (number | null)[]>
  /**
   * Which of these `keep` would answer with `null`, in order. Only for requests that would be refused: it may read the disk
   * once for each message.
   */
  known(channel: string, messages: readonly Pick<Inbound, 'account' | 'id'>[]): Promise<readonly boolean[]>
  /**
   * Begins an attempt; `turnId` names the turn if it has none yet. Undefined if it is no longer to run. After `startsMax`
   * starts nothing is begun, and the message is left as it is.
   */
  start(number: number, turnId: string, startsMax: number): Promise<StartedMessage | SpentMessage | undefined>
  /** The attempt failed; another follows, not before `atMs`. */
  retry(number: number, failed: RetriedAttempt): Promise<void>
  /** The attempt was cut by a stop of the daemon and does not count. */
  release(number: number): Promise<void>
  /**
   * Ends a message for which nothing is to run, such as an answer to an approval that was decided before; a turn begun for it is
   * aborted. The replies are queued in the same commit, and only by the call that ends the message. Resolves to their numbers.
   */
  done(number: number, atMs: number, replies?: readonly NewReply[]): Promise<readonly number[]>
  /** Keeps the provider's id of the message that shows the reply while it is made, so that a later attempt goes on with it. */
  draft(number: number, providerId: string): Promise<void>
  /** Gives up: the message is dead, its turn has failed. */
  markDead(number: number, failed: { readonly error: string; readonly atMs: number }): Promise<void>
  /** What is to run, oldest first, with a number above `after`; `running` ones too, which a crash left behind. */
  waiting(options: { readonly after: number; readonly limit: number }): Promise<WaitingMessage[]>
  /** Newest first. */
  list(filter: DeliveryFilter): Promise<InboxRow[]>
  get(number: number): Promise<InboxEntry | undefined>
  /** Makes a message that is done or dead run once more, in a new turn; false if it is neither, or its content is dropped. */
  replay(number: number): Promise<boolean>
  /** How many rows are in each state but `done`. */
  counts(): Promise<Readonly<Record<Exclude<InboxState, 'done'>, number>>>
}

/**
 * `queued`: not tried yet. `sending`: a request is under way. `failed`: not sent, another attempt follows. `sent`: the
 * provider has it. `ambiguous`: it may have been sent, which nobody can tell; left to the operator. `dead`: not sent and
 * given up.
 */
export type OutboxState = 'queued' | 'sending' | 'failed' | 'sent' | 'ambiguous' | 'dead'

/** A file of the workspace that goes with a message; read when it is sent. */
export interface ReplyFile {
  readonly kind: 'image' | 'audio' | 'video' | 'file'
  /** In the workspace, relative. */
  readonly path: string
}

/** What a message has beside its text; JSON. */
export interface ReplyExtras {
  /** The provider's id of a message of ours that this one replaces, instead of being sent. */
  readonly edits?: string
  /** Sent after all if that one can no longer be edited. */
  readonly elseSend?: true
  readonly buttons?: readonly Button[]
  readonly topic?: string
  readonly files?: readonly ReplyFile[]
}

/** One message to send: a reply, or a part of a long one. */
export interface NewReply {
  readonly channel: string
  readonly account: string
  readonly to: Address
  readonly text: string
  /** From 1; of `parts`. */
  readonly part: number
  readonly parts: number
  readonly clientId: string
  readonly turnId: string | null
  readonly createdAtMs: number
  readonly extras?: ReplyExtras
  /** The span that says it, as `formatTraceContext` writes it; while an observer traces. */
  readonly trace?: string
}

/** A reply whose sending begins. */
export interface StartedReply extends NewReply {
  readonly number: number
  /** When it was queued or last replayed: it is retried for a limited time from then on. */
  readonly sinceMs: number
  /** Attempts that count, this one included. */
  readonly attempts: number
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
  /** The provider's id of what was sent. */
  readonly providerId: string | null
  /** Of the last attempt that failed; null once it is sent. */
  readonly error: string | null
  readonly clientId: string
  /** The inbox message it answers. */
  readonly inbox: number | null
  readonly turnId: string | null
}

export interface OutboxStore {
  /** Queues messages nobody asked for; resolves to their numbers. Replies come with the end of their turn. */
  add(replies: readonly NewReply[]): Promise<readonly number[]>
  /** Begins an attempt, durably, before anything is sent. Undefined if it is no longer to be sent. */
  start(number: number): Promise<StartedReply | undefined>
  sent(number: number, sent: { readonly providerId: string; readonly atMs: number }): Promise<void>
  /** It was not sent; another attempt follows, not before `atMs`. */
  retry(number: number, failed: RetriedAttempt): Promise<void>
  /** `dead` takes the later parts of the same reply with it, which would make no sense alone. */
  giveUp(number: number, failed: { readonly state: 'ambiguous' | 'dead'; readonly error: string; readonly atMs: number }): Promise<void>
  /** What was to replace another message is one of its own from now on, since that one can no longer be edited. */
  sendInstead(number: number): Promise<void>
  /**
   * After a crash: what was under way becomes `failed` and due if it was an edit, or on channels where repeats are dropped,
   * and `ambiguous` otherwise. Resolves to the numbers of the ambiguous.
   */
  recover(options: { readonly repeatable: readonly string[]; readonly atMs: number }): Promise<readonly number[]>
  /** What is to be sent, oldest first, with a number above `after`. */
  waiting(options: { readonly after: number; readonly limit: number }): Promise<Waiting[]>
  /** Newest first. */
  list(filter: DeliveryFilter): Promise<OutboxRow[]>
  get(number: number): Promise<OutboxRow | undefined>
  /**
   * Makes what is dead or ambiguous due once more, with the same client id, and the later parts that died with it. False if
   * it is neither, or its text is dropped.
   */
  replay(number: number): Promise<boolean>
  /** How many rows are in each state but `sent`. */
  counts(): Promise<Readonly<Record<Exclude<OutboxState, 'sent'>, number>>>
}
