/**
 * Processes the messages of the inbox by their kind: a reply to an approval decides it, a command or a change of an earlier message is
 * carried out, a procedure event starts procedures, and any other message is a turn whose reply is queued in the commit that ends the turn.
 */
import { type Attempt, type JobOutcome, LaneQueue } from '@sluice/kit'
import { type Channel, type Inbound, type OwnedStore, sessionOfLane, type Waiting, type WaitingMessage } from '@sluice/sdk'
import { channelNamed } from '../delivery-options.ts'
import { DeliveryQueue, type OwnedRow } from '../delivery-queue.ts'
import { admitMessage, endBeyondShare, principalOf } from './admit-message.ts'
import { ArrivedMessages } from './arrived-messages.ts'
import { ABSENT_DELAY_MS, Attempts } from './attempts.ts'
import { heldBack } from './before-restore.ts'
import { BesideTurns } from './beside-turns.ts'
import { LongWaits } from './long-waits.ts'
import { MessageTurns } from './message-turns.ts'
import { gatherPieces, type PiecesOptions } from './pieces.ts'
import { fireProcedures } from './procedures.ts'
import { reasonToEnd, roomLimits } from './rooms.ts'
import { RunningTurns } from './running-turns.ts'
import { isMuted } from './session-settings.ts'
import { StoredMessages } from './stored-messages.ts'
import { interrupt, remind } from './waiting-behind.ts'
import { WaitingShares } from './waiting-shares.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

/** The number of replies to approvals, commands and changes that are processed at the same time. */
const BESIDE_TURNS_MAX = 4

export class InboxWorker {
  readonly #options: InboxWorkerOptions
  /** Turns and procedure events, in the lanes that all turns share. */
  readonly #messages: DeliveryQueue
  /** Replies to approvals, changes and most commands have permits of their own, because the turns that hold the others may wait for them. */
  readonly #besideQueue: DeliveryQueue
  readonly #arrived = new ArrivedMessages()
  readonly #shares: WaitingShares
  readonly #running: RunningTurns
  readonly #stored: StoredMessages
  readonly #besideTurns: BesideTurns
  readonly #turns: MessageTurns
  readonly #joining: PiecesOptions
  readonly #attempts: Attempts
  readonly #longWaits: LongWaits

  constructor(options: InboxWorkerOptions) {
    const { clock, log, stopping, turns } = options
    const attempts = new Attempts(options)
    const { lostEnds } = attempts
    const onDone = (row: Waiting): void => {
      lostEnds.forget(row.number)
      attempts.withdrawn.delete(row.number)
      this.#arrived.delete(row.number)
      this.#shares.release(row.number)
      this.#longWaits.left(row.number)
      this.#besideTurns.left(row.number)
      options.onDone(row)
    }
    const arrived = this.#arrived
    const work = async (row: OwnedRow, attempt: Attempt): Promise<JobOutcome> => {
      try {
        return (await lostEnds.settle(row.owned, row.number)) ?? (await this.#work(row, attempt))
      } catch (error) {
        lostEnds.unended(row.number, error)
        throw error
      }
    }
    this.#options = options
    this.#attempts = attempts
    this.#longWaits = new LongWaits(options, attempts)
    this.#shares = new WaitingShares(options)
    this.#running = new RunningTurns({ clock, stopping })
    this.#messages = new DeliveryQueue({ lanes: turns.lanes, clock, log, onDone, work })
    this.#besideQueue = new DeliveryQueue({ lanes: new LaneQueue({ clock, permits: () => BESIDE_TURNS_MAX }), clock, log, onDone, work })
    this.#joining = this.#joiningOptions()
    const parts = { attempts, arrived, running: this.#running }
    this.#stored = new StoredMessages(options, arrived, attempts)
    this.#besideTurns = new BesideTurns(options, { ...parts, messages: this.#messages })
    this.#turns = new MessageTurns(options, { ...parts, joining: this.#joining })
  }

  /** The number of messages that run or wait. */
  get size(): number {
    return this.#messages.size + this.#besideQueue.size
  }

  /** How long the oldest message has been in the queue. */
  get oldestMs(): number {
    return Math.max(this.#messages.oldestMs, this.#besideQueue.oldestMs)
  }

  /** Whether a change may wait for its message, which has not arrived. */
  get takesEarlyChanges(): boolean {
    return this.#besideTurns.takesEarlyChanges
  }

  /** How long a turn of the account with this key has been ready to start. */
  readyMs(account: string): number {
    return this.#messages.readyMs(account)
  }

  /**
   * Returns false for a message that is already in the queue, and once the worker is stopped. `message` is given when it has just been
   * parsed. A message that `isNew` ends as `limited` when too many messages of its sender wait.
   */
  enter(row: WaitingMessage, owned: OwnedStore, message?: Inbound, isNew = message !== undefined): boolean {
    if (this.has(row.number)) return false
    // A release before this one stored `/new` in the lane of its session.
    const isBesideTurns =
      row.kind === 'approval_reply' || row.kind === 'change' || (row.kind === 'command' && sessionOfLane(row.lane) !== row.lane)
    // The attempt may begin before `enter` returns.
    if (message) this.#arrived.add(row.number, message)
    const hasEntered = isBesideTurns ? this.#besideQueue.enter(row, owned) : this.#enterTurn(row, owned, { message, isNew })
    if (!hasEntered) this.#arrived.delete(row.number)
    else if (message && isNew && row.kind === 'turn') {
      remind(this.#options, row, owned, message)
      if (this.#options.features.pacing(row.channel).steering === 'interrupt' && this.#messages.has(row.number))
        void interrupt(this.#options, this.#running, { row, owned, message })
    }
    return hasEntered
  }

  has(number: number): boolean {
    return this.#messages.has(number) || this.#besideQueue.has(number)
  }

  /** Ends a message; see `DeliveryQueue.ending`. */
  ending({ number }: Waiting, end: () => Promise<void>): Promise<boolean> {
    return (this.#besideQueue.has(number) ? this.#besideQueue : this.#messages).ending(number, end)
  }

  /** Removes the messages under a lost lease. Attempts under way end without effect. */
  drop(owned: OwnedStore): void {
    for (const queue of [this.#messages, this.#besideQueue]) queue.drop(owned)
  }

  /** Resolves once no attempt under this lease is under way. */
  async idle(owned: OwnedStore): Promise<void> {
    await Promise.all([this.#messages.idle(owned), this.#besideQueue.idle(owned)])
  }

  /** Starts no more messages. Resolves once the attempts under way have ended. */
  async stop(): Promise<void> {
    await Promise.all([this.#messages.stop(), this.#besideQueue.stop()])
  }

  #enterTurn(row: WaitingMessage, owned: OwnedStore, given: { readonly message: Inbound | undefined; readonly isNew: boolean }): boolean {
    const place = this.#shares.take(row, given)
    const hasEntered = place === 'beyond' ? this.#besideQueue.enter(row, owned) : this.#messages.enter(row, owned, place)
    if (hasEntered) this.#longWaits.add(row, owned)
    else this.#shares.release(row.number)
    return hasEntered
  }

  #joiningOptions(): PiecesOptions {
    const { clock, features, takenAtMs } = this.#options
    return {
      clock,
      takenAtMs,
      channels: features.channels,
      batchMs: (channel) => features.pacing(channel).batchMs,
      known: (number) => this.#arrived.get(number),
      onRead: (number, message) => this.#arrived.add(number, message),
      onTaken: (number) => void this.#messages.end(number, async () => {}),
      onChanged: (number, message) => {
        this.#arrived.delete(number)
        this.#arrived.add(number, message)
      },
      onStale: (number) => this.#arrived.delete(number),
    }
  }

  async #work(row: OwnedRow, attempt: Attempt): Promise<JobOutcome> {
    const { number, channel: name, kind, owned } = row
    const { clock, features, stopping, restoredAtMs } = this.#options
    const nowMs = clock.nowMs()
    const later = { retryAtMs: nowMs + ABSENT_DELAY_MS }
    if (stopping.aborted) return later
    const channel = channelNamed(features, name)
    const found = this.#arrived.get(number) ?? (await this.#stored.read(row, channel))
    if (!found) return 'done'
    if ('unreadable' in found) return channel ? this.#stored.outcome(row, found) : later
    if (kind === 'change') return this.#besideTurns.change(row, found)
    const old = restoredAtMs === undefined ? undefined : await heldBack(owned, number, found, restoredAtMs)
    if (old) return this.#attempts.giveUp(owned, { number, channel: name, attempts: old.attempts }, { error: old.error })
    if (kind === 'approval_reply') return this.#besideTurns.approvalReply(owned, row, found)
    if (!channel) return later
    if (kind === 'command') return this.#besideTurns.command(row, channel, found, attempt)
    return this.#message(row, channel, found, attempt)
  }

  /** Runs a message that is a turn or starts procedures, once it is admitted, together with what its sender wrote right after it. */
  async #message(row: OwnedRow, channel: Channel, found: Inbound, attempt: Attempt): Promise<JobOutcome> {
    const { number, kind, lane, owned } = row
    const { clock, features, limits, rooms } = this.#options
    const nowMs = clock.nowMs()
    const withdrawn = await this.#attempts.endWithdrawn(owned, number)
    if (withdrawn) return withdrawn
    // Each attempt judges the message by the rule of now, and the sender by the allowlists of now.
    const room = await rooms.of(channel, found, lane)
    const reason = room && reasonToEnd(channel, room, found)
    if (reason !== undefined) {
      await this.#attempts.endWaiting(owned, number, { reason, isStopped: false })
      return 'done'
    }
    const hasOthers = attempt.superseded?.aborted === true
    const gathered = this.#shares.beyond(number)
      ? { message: found, pieces: [] }
      : await gatherPieces(this.#joining, { owned, channel, number, session: lane, kind, message: found, hasOthers })
    if ('retryAtMs' in gathered) return gathered
    const { message, pieces } = gathered
    const admitting = { ...this.#options, ...limits, texts: features.texts() }
    const client = { ...(await principalOf(this.#options, channel, message)), ...(room && roomLimits(room)) }
    const asking = { owned, channel, number, message, client, session: lane, waiting: this.#messages.size }
    const beyond = this.#shares.beyond(number)
    if (beyond) return endBeyondShare(admitting, asking, beyond)
    if (kind !== 'procedure_event' && (await isMuted(owned, lane, client.standing, nowMs))) {
      await this.#attempts.endWaiting(owned, number, { isStopped: false })
      return 'done'
    }
    await this.#besideTurns.earlyChanges(owned, channel, message)
    const held = await admitMessage(admitting, asking)
    if (held) return held
    this.#shares.begins(number)
    // A message without a kind is classified now.
    const procedures = kind === 'turn' ? undefined : features.procedures()
    const taken = await fireProcedures({ ...this.#options, store: owned, procedures }, channel, number, message, client)
    if (taken === true) return 'done'
    const told = { number, channel: channel.name, lane, message }
    if (taken && 'skippedFor' in taken) return this.#attempts.skipped(owned, told, taken.skippedFor)
    if (taken) return this.#attempts.withoutRoom(owned, told, taken)
    return this.#turns.run(row, { channel, message, pieces, client, attempt, room })
  }
}
