/** Durable delivery: resumes the unfinished work of the shards that this process owns, accepts new messages, and processes inbox and outbox. */

import {
  type Channel,
  type Deliver,
  type DeliveryReport,
  type Inbound,
  type OwnedStore,
  shardOfSession,
  type Waiting,
  type WaitingMessage,
} from '@sluice/sdk'
import { type ArrivalOrder, arrivalOrder } from './cluster/arrival-order.ts'
import { CommandMenus } from './command-menus.ts'
import type { DeliveryOptions } from './delivery-options.ts'
import type { QueuedReply } from './delivery-queue.ts'
import { ANY_ROW, ChangeFollower, type NoticedChange } from './follow-changes.ts'
import { InboxWorker } from './inbox/inbox-worker.ts'
import { Intake } from './inbox/intake.ts'
import { Overheard } from './inbox/overheard.ts'
import { Rooms } from './inbox/rooms.ts'
import { TakenShards } from './inbox/taken-shards.ts'
import { Listeners } from './listeners.ts'
import { watchIngress } from './observe.ts'
import { Outboxes } from './outbox/outboxes.ts'
import { takeReports } from './outbox/undelivered.ts'
import { tellOfCutOff } from './people/tell-changes.ts'
import { type WatchOptions, watchChannels } from './watch-channels.ts'

/** The messages and replies that wait. The functions need no `this`. */
export interface DeliveryQueues {
  readonly load: () => { readonly messages: number; readonly replies: number }
  /** The waiting times of the oldest message and of the oldest unsent reply, counted from the start of the daemon at the earliest. */
  readonly ages: () => { readonly messageSecs: number; readonly replySecs: number }
  /** Checks the store for rows that became due there. */
  readonly wake: () => void
  /** Queues replies that were just stored. The owner of their shard sends them. */
  readonly queued: (replies: readonly QueuedReply[]) => void
}

export interface Deliveries extends DeliveryQueues {
  readonly receive: Intake['receive']
  readonly deliver: Intake['deliver']
  /** Takes later reports of the platform about sent replies. Resolves once they are durable. */
  readonly report: (channel: Channel, reports: readonly DeliveryReport[]) => Promise<void>
  /** Accepts and starts nothing more. Resolves once the attempts under way have ended; sends are cut off after `graceMs`. */
  readonly stop: (graceMs: number) => Promise<void>
}

const PAGE_ROWS = 5000
/**
 * Where other processes write all the time, all waiting rows are read again and again in case a notice was lost. That takes longer the more
 * wait, so it takes at most one part in this many of the time, and begins at the latest after `LOOK_MS_MAX`.
 */
const LOOK_PARTS = 20
const LOOK_MS_MAX = 30_000

/** Resolves once the unfinished work of the shards that this process owns is queued, and runs until `stop`. */
export async function startDeliveries(options: DeliveryOptions): Promise<Deliveries> {
  const deliveries = new RunningDeliveries(options)
  await deliveries.start()
  return deliveries
}

class RunningDeliveries implements Deliveries {
  readonly #options: DeliveryOptions
  readonly #stopping = new AbortController()
  readonly #cutOff = new AbortController()
  readonly #intake: Intake
  readonly #inbox: InboxWorker
  readonly #outboxes: Outboxes
  readonly #listeners: Listeners
  readonly #menus: CommandMenus
  readonly #shards: TakenShards
  #unsubscribe: readonly (() => void)[] = []
  readonly #changes: ChangeFollower
  /** When all rows may be read again because another process wrote, by the monotonic clock, and whether that is planned. */
  #nextLookMs = Number.NEGATIVE_INFINITY
  #isLookPlanned = false
  readonly #order: ArrivalOrder

  constructor(options: DeliveryOptions) {
    const { store, features, approvals, clock, log, events, ownership } = options
    this.#options = options
    this.#shards = new TakenShards(clock)
    this.#outboxes = new Outboxes(options, this.#cutOff.signal)
    const rooms = new Rooms({ store, rooms: features.rooms, log })
    const overheard = new Overheard({ store, clock })
    this.#inbox = new InboxWorker({
      ...options,
      rooms,
      overheard,
      changesOverheard: (channel, message, receivedAtMs) => this.#intake.changesOverheard(channel, message, receivedAtMs),
      stopping: this.#stopping.signal,
      takenAtMs: (owned) => this.#shards.takenAtMs(owned),
      onDone: (row) => this.#intake.left(row),
      onDue: this.wake,
      onReplies: (replies) => this.queued(replies),
    })
    const { config, procedures, agentOf } = features
    const inbox = this.#inbox
    const worker = {
      enter: (row: WaitingMessage, message: Inbound) => this.#enterArrived(row, message),
      readyMs: (account: string) => inbox.readyMs(account),
      get takesEarlyChanges() {
        return inbox.takesEarlyChanges
      },
    }
    this.#intake = new Intake({
      inbox: store.inbox,
      worker,
      approvals,
      clock,
      log,
      config,
      procedures,
      agentOf,
      rooms,
      overheard,
      people: options.people,
      operators: options.limits.operators,
    })
    this.#listeners = new Listeners({ clock, log, events, ownership, deliver: (channel) => this.#deliver(channel) })
    this.#menus = new CommandMenus({ clock, log, stopping: this.#stopping.signal })
    this.#order = arrivalOrder(store, {
      enter: (row, owned, message) => inbox.enter(row, owned, message),
      enterStored: (row, arrived) => this.#enterStored(row, arrived),
      left: (row) => this.#intake.left(row),
      failed: (error) => {
        log.error('messages of other nodes cannot be read: the next look finds them', { error })
        this.#changes.notice(ANY_ROW)
      },
    })
    this.#changes = new ChangeFollower(log, (change) => this.#followChange(change))
  }

  async start(): Promise<void> {
    const { features, ownership, people, store, turns } = this.#options
    await people.refresh()
    // Changes are followed before the first read, so that no row falls between the two.
    this.#unsubscribe = [store.onChange((change) => this.#changes.notice({ ...change, isForeign: true }))]
    const leaveShards = await ownership.onShards(
      (owned) => this.#take(owned),
      (owned) => this.#leave(owned),
    )
    const leaveFeatures = features.onChange(() => {
      this.#listeners.set(features.channels())
      this.#menus.set(features.channels(), features.texts())
      // `max_concurrent_turns` may have grown.
      turns.lanes.wake()
      this.#changes.notice(ANY_ROW)
    })
    this.#unsubscribe = [...this.#unsubscribe, leaveShards, leaveFeatures]
    this.#listeners.set(features.channels())
    this.#menus.set(features.channels(), features.texts())
    const { channels, texts } = features
    const watching: WatchOptions = {
      ...this.#options,
      owned: () => this.#shards,
      ending: (kind, row, end) => (kind === 'messages' ? this.#inbox : this.#outboxes).ending(row, end),
      onLook: () => this.#changes.retry(),
    }
    watchChannels(watching, this.#stopping.signal)
    void tellOfCutOff({ ...this.#options, channels, texts, onReplies: (replies) => this.queued(replies) })
  }

  readonly receive: Intake['receive'] = (channel, received) => this.#intake.receive(channel, received)

  readonly deliver: Intake['deliver'] = (...given) => this.#intake.deliver(...given)

  readonly report: Deliveries['report'] = (channel, reports) => takeReports(this.#options, channel.name, reports, this.#stopping.signal)

  readonly load: Deliveries['load'] = () => ({ messages: this.#inbox.size, replies: this.#outboxes.size })

  readonly ages: Deliveries['ages'] = () => ({
    messageSecs: this.#inbox.oldestMs / 1000,
    replySecs: this.#outboxes.oldestMs / 1000,
  })

  readonly wake = (): void => {
    this.#changes.notice(ANY_ROW)
  }

  readonly queued = (replies: readonly QueuedReply[]): void => {
    for (const reply of replies) {
      const owned = this.#shards.of(reply.shard)
      if (owned) this.#outboxes.enter(reply, owned)
    }
  }

  readonly stop = async (graceMs: number): Promise<void> => {
    this.#stopping.abort()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    const ended = new AbortController()
    void this.#options.clock.sleep(graceMs, ended.signal).then(() => this.#cutOff.abort())
    await Promise.all([this.#outboxes.stop(), this.#listeners.stop(), this.#inbox.stop()])
    ended.abort()
  }

  /** Delivers the messages of a connection that the channel holds. */
  #deliver(channel: Channel): Deliver {
    const { clock, telemetry } = this.#options
    return async (message) => {
      const watch = watchIngress({ clock, traces: telemetry.traces(), observe: telemetry.observe }, { channel: channel.name, signed: true })
      const { kept, duplicate } = await this.receive(channel, {
        raw: null,
        verified: { by: 'fetched by us' },
        receivedAtMs: clock.nowMs(),
        messages: [message],
        trace: watch.trace,
      })
      watch.ended(kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : 'denied')
    }
  }

  /** Recovers and queues the work that the earlier owner of these shards left, until the lease is lost. */
  async #take(owned: OwnedStore): Promise<void> {
    const { clock, features, log } = this.#options
    const { lost } = owned.lease
    if (this.#stopping.signal.aborted || lost.aborted) return
    this.#shards.add(owned, () => this.#drop(owned))
    const repeatable = features.channels().flatMap(({ name, limits }) => (limits.dedupesClientIds ? [name] : []))
    const ambiguous = await owned.outbox.recover({ repeatable, atMs: clock.nowMs() })
    if (ambiguous.length > 0)
      log.warn('replies that the last run was sending may or may not have been sent', {
        replies: ambiguous.length,
        see: 'sluice outbox dead',
      })
    const found = await this.#enterWaiting(owned)
    for (const { row, message } of this.#shards.opened(owned)) if (!this.#inbox.enter(row, owned, message)) this.#intake.left(row)
    if (found.messages + found.replies > 0) log.info('resuming unfinished deliveries', found)
  }

  /** Starts nothing more of these shards. Resolves once the attempts under way have ended. */
  async #leave(owned: OwnedStore): Promise<void> {
    this.#drop(owned)
    await Promise.all([this.#inbox.idle(owned), this.#outboxes.idle(owned)])
  }

  /** Removes the rows of lost shards from their lanes. They stay unfinished in the store for the next owner. */
  #drop(owned: OwnedStore): void {
    if (this.#stopping.signal.aborted) return
    for (const { row } of this.#shards.opened(owned)) this.#intake.left(row)
    this.#shards.delete(owned)
    this.#inbox.drop(owned)
    this.#outboxes.drop(owned)
  }

  /** Queues a message that was just stored. The owner of its shard learns about any other message from the store. */
  #enterArrived(row: WaitingMessage, message: Inbound): boolean {
    // A process that owns everything need not compute the shard of each message.
    const shard = this.#options.ownership.ownsAll ? 0 : shardOfSession(row.lane)
    const owned = this.#shards.of(shard)
    if (!owned) return false
    return this.#shards.holdsBack(owned, { row, message }) || this.#order.arrived({ row, message }, owned)
  }

  /** Queues every row of these shards that waits in the store. Rows that are queued already keep their place. */
  async #enterWaiting(owned: OwnedStore): Promise<{ readonly messages: number; readonly replies: number }> {
    const present = new Set(this.#options.features.channels().map(({ name }) => name))
    const entered = { messages: 0, replies: 0 }
    await eachPage(
      (page) => owned.inbox.waiting(page),
      (row) => {
        if (!this.#shards.has(owned) || !present.has(row.channel) || !this.#inbox.enter(row, owned)) return
        this.#intake.entered(row)
        entered.messages += 1
      },
    )
    await eachPage(
      (page) => owned.outbox.waiting(page),
      (row) => {
        if (this.#shards.has(owned) && present.has(row.channel) && this.#outboxes.enter(row, owned)) entered.replies += 1
      },
    )
    return entered
  }

  /** Queues a message of the store. Returns false for one that is queued already or belongs to another process. */
  #enterStored(row: WaitingMessage, arrived: Inbound | undefined): boolean {
    const { features } = this.#options
    const owned = this.#shards.of(shardOfSession(row.lane))
    if (!owned || !features.channels().some(({ name }) => name === row.channel)) return false
    if (!this.#inbox.enter(row, owned, arrived, true)) return false
    if (!arrived) this.#intake.entered(row)
    return true
  }

  async #followChange(change: NoticedChange): Promise<void> {
    if (this.#order.stored(change)) return
    if (change.isForeign) await this.#options.changedElsewhere(change)
    const { clock } = this.#options
    const startMs = clock.monotonicMs()
    const isAnyForeign = change.isForeign && change.shards === null
    if (isAnyForeign && startMs < this.#nextLookMs) {
      this.#planLook(this.#nextLookMs - startMs)
      return
    }
    // All at once, so that the store can read the rows of all shards together.
    await Promise.all(this.#shards.concernedBy(change).map((owned) => this.#enterWaiting(owned)))
    const nowMs = clock.monotonicMs()
    if (isAnyForeign) this.#nextLookMs = nowMs + Math.min(LOOK_MS_MAX, LOOK_PARTS * (nowMs - startMs))
  }

  #planLook(inMs: number): void {
    if (this.#isLookPlanned) return
    this.#isLookPlanned = true
    void this.#options.clock.sleep(inMs, this.#stopping.signal).then(() => {
      this.#isLookPlanned = false
      if (!this.#stopping.signal.aborted) this.#changes.notice({ shards: null, isForeign: true })
    })
  }
}

async function eachPage<Row extends Waiting>(
  read: (options: { after: number; limit: number }) => Promise<readonly Row[]>,
  take: (row: Row) => void,
): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await read({ after, limit: PAGE_ROWS })
    for (const row of rows) take(row)
    const last = rows.at(-1)
    if (!last || rows.length < PAGE_ROWS) return
    after = last.number
  }
}
