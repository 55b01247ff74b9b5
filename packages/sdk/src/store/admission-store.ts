/**
 * The port of admission (docs/contract.md#limits): the turns and the spending of the clients that a limit applies to. Nothing is
 * stored for a client without a limit.
 */
import type { NoticeKind } from '../observe/events.ts'

/** The limits of one client, or of a pool of clients. 0 means no limit. */
export interface Limits {
  /** Turns that begin within any 60 minutes. */
  readonly turnsPerHour: number
  /** Turns that are admitted and have not ended. */
  readonly turnsInFlight: number
  /** US dollars within a day in UTC. */
  readonly usdPerDay: number
}

/** The limits that a turn must keep. `key` names the client or the pool whose turns they count. */
export interface CountedLimits extends Limits {
  readonly key: string
}

/** `turns_waiting` and `waiting_mb` are the shares of a client, which the daemon counts in memory, as it counts the `commands` of chats. */
export type LimitName = 'turns_per_hour' | 'turns_in_flight' | 'usd_per_day' | 'turns_waiting' | 'waiting_mb' | 'commands'

/** Why a client is held back: a limit, or the breaker of loops between bots. */
export type LimitCause = Exclude<LimitName, 'turns_in_flight'> | 'loop'

/** Why a conversation, or the operators, got a notice; recorded with the end `sinceMs`, so that the list of held clients leaves it out. */
export type NoticeCause = 'unanswered' | `unanswered:${string}` | 'waiting' | `notice:${NoticeKind}`

/** A turn that asks for admission. */
export interface AdmissionRequest {
  /** The turn, or `inbox:<number>` for a message. The same id is counted once, however often it asks. */
  readonly id: string
  /** The limits of the client, followed by the limits of its pool if it is in one. */
  readonly counted: readonly CountedLimits[]
  readonly shard: number
  readonly atMs: number
}

/** The limit that a turn would exceed. */
export interface Exceeded {
  readonly limit: LimitName
  /** The client or the pool whose limit it is. */
  readonly key: string
  /** The value of the limit. */
  readonly value: number
  /** The earliest time at which the limit admits another turn; for `turns_in_flight` the time of the request. */
  readonly freeAtMs: number
}

/** A client, a pool or a session that is held back. */
export interface HeldBack<Cause extends string = LimitCause> {
  /** A client as in `ToolContext.caller`, a pool (`strangers`, `strangers:<channel>`), or for `loop` a session. */
  readonly client: string
  readonly cause: Cause
  readonly sinceMs: number
  readonly untilMs: number
}

/** Where a message counts for the breaker of loops. */
export interface LoopSeries {
  readonly session: string
  /** The session, or where people of a room share it `sessionOfWriter`, so that one writer does not end the answers for the others. */
  readonly series: string
}

/** The state of the breaker of loops for the series of a message. */
export interface LoopState {
  /**
   * How long after the last answer of the session the message arrived; negative when it arrived before. Null for a new session, and when
   * an earlier message was counted for the same answer.
   */
  readonly afterAnswerMs: number | null
  /**
   * Quick messages of the series before this one, as `countQuick` has counted them. In a shared room those since the last slow message of
   * any writer.
   */
  readonly quick: number
  /** The end of the pause of the series; null when it is not paused. */
  readonly pausedUntilMs: number | null
  readonly sender: string
  readonly account: string
  /** True for a message that began a turn before, or that an operator replayed: no limit applies to it. */
  readonly isAdmitted: boolean
}

export interface AdmissionStore {
  /** Counts the turn and resolves to undefined, or resolves to the limit that it would exceed and counts nothing. */
  take(request: AdmissionRequest): Promise<Exceeded | undefined>
  /** Takes back the admission of a turn that was not accepted. */
  cancel(id: string): Promise<void>
  /** Adds the cost of a model call to the day of each of these clients and pools. */
  spend(keys: readonly string[], usd: number, atMs: number): Promise<void>
  /** Resolves to the first of these limits whose spending of the day is used up. */
  overspent(counted: readonly CountedLimits[], atMs: number): Promise<Exceeded | undefined>
  /**
   * Records that a client is held back. Resolves to true when this is news: no record with this cause was made within `quietMs`.
   */
  hold(held: HeldBack<LimitCause | NoticeCause>, quietMs: number): Promise<boolean>
  /** Whether the client has begun a turn within the last 24 hours. */
  wasServed(client: string, atMs: number): Promise<boolean>
  /** Resolves to undefined for a message that is unknown or has ended. Without a series, it counts in the session that is its lane. */
  loopState(inbox: number, of?: LoopSeries): Promise<LoopState | undefined>
  /**
   * Stores the number of quick messages of a series, up to and with this message, which followed an answer. With 0 the counting starts over,
   * in a shared room for all writers.
   */
  countQuick(of: LoopSeries, inbox: number, quick: number): Promise<void>
  /** Restarts the counting of one series with this message, which followed an answer. In a shared room the other writers' counts stay. */
  forgetQuick(of: LoopSeries, inbox: number): Promise<void>
  /** Lists who is held back at this time, the latest end first. */
  list(atMs: number, limit: number): Promise<HeldBack[]>
  /** Forgets the turns, the spending of the day and the records of a client, a pool or a series. Resolves to false when there were none. */
  reset(client: string): Promise<boolean>
}

export interface OwnedAdmissionStore extends AdmissionStore {
  /** Ends the admissions of turns that an earlier holder of the lease began and did not store. `running` are the turns of this process. */
  recover(running: readonly string[]): Promise<void>
}
