/** Durable delivery: resumes unfinished work of the last run, accepts new messages, and processes inbox and outbox. */

import { every } from '@sluice/kit'
import type { Channel, Deliver, Waiting } from '@sluice/sdk'
import type { DeliveryOptions } from './delivery-options.ts'
import { type Account, accountKey } from './delivery-queue.ts'
import { HealthWatch } from './health-watch.ts'
import { InboxWorker } from './inbox-worker.ts'
import { Intake } from './intake.ts'
import { Listeners } from './listeners.ts'
import { watchIngress } from './observe.ts'
import { OutboxWorker } from './outbox-worker.ts'

/** The messages and replies that wait. The functions need no `this`. */
export interface DeliveryQueues {
  readonly load: () => { readonly messages: number; readonly replies: number }
  /** The waiting times of the oldest message and of the oldest unsent reply, counted from the start of the daemon at the earliest. */
  readonly ages: () => { readonly messageSecs: number; readonly replySecs: number }
  /** Checks the store for rows that became due there. */
  readonly wake: () => void
  /** Queues replies that were just stored. */
  readonly queued: (replies: readonly Waiting[]) => void
}

export interface Deliveries extends DeliveryQueues {
  readonly receive: Intake['receive']
  /** Accepts and starts nothing more. Resolves once the attempts under way have ended; sends are cut off after `graceMs`. */
  readonly stop: (graceMs: number) => Promise<void>
}

/** The interval of checks for changes of other processes and for the health of channels. */
const LOOK_MS = 1000
const PAGE_ROWS = 5000

/** Resumes unfinished work of the last run, then runs until `stop`. At most one may run for a data directory. */
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
  /** The workers by account key; bounded by the number of accounts. */
  readonly #outboxes = new Map<string, OutboxWorker>()
  readonly #listeners: Listeners
  #unsubscribe = (): void => {}
  readonly #health: HealthWatch
  /** The number of changes of the features in force, and the number at the last check. */
  #changes = 0
  #changesSeen = 0
  /** The version of the store at the last check. */
  #foreignVersion = 0

  constructor(options: DeliveryOptions) {
    const { store, features, approvals, clock, log, events } = options
    this.#options = options
    this.#inbox = new InboxWorker({
      ...options,
      stopping: this.#stopping.signal,
      onDone: (row) => this.#intake.left(row),
      onReplies: (replies) => this.queued(replies),
    })
    const { config, procedures } = features
    this.#intake = new Intake({ inbox: store.inbox, worker: this.#inbox, approvals, clock, log, config, procedures })
    this.#listeners = new Listeners({ clock, log, events, deliver: (channel) => this.#deliver(channel) })
    this.#health = new HealthWatch(options)
  }

  async start(): Promise<void> {
    const { clock, features, log, store, turns } = this.#options
    const channels = features.channels()
    const repeatable = channels.flatMap(({ name, limits }) => (limits.dedupesClientIds ? [name] : []))
    const ambiguous = await store.outbox.recover({ repeatable, atMs: clock.nowMs() })
    if (ambiguous.length > 0)
      log.warn('replies that the last run was sending may or may not have been sent', {
        replies: ambiguous.length,
        see: 'sluice outbox dead',
      })
    const found = await this.#enterWaiting()
    if (found.messages + found.replies > 0) log.info('resuming unfinished deliveries', found)
    this.#foreignVersion = await store.foreignVersion()
    const look = this.#quietly(() => this.#look())
    this.#unsubscribe = features.onChange(() => {
      this.#changes += 1
      this.#listeners.set(features.channels())
      // `max_concurrent_turns` may have grown.
      turns.lanes.wake()
      look()
    })
    this.#listeners.set(features.channels())
    void every(clock, LOOK_MS, this.#stopping.signal, look)
  }

  readonly receive: Intake['receive'] = (channel, received) => this.#intake.receive(channel, received)

  readonly load: Deliveries['load'] = () => {
    const replies = [...this.#outboxes.values()].reduce((sum, { queue }) => sum + queue.size, 0)
    return { messages: this.#inbox.size, replies }
  }

  readonly ages: Deliveries['ages'] = () => {
    const oldestReplyMs = Math.max(0, ...[...this.#outboxes.values()].map(({ queue }) => queue.oldestMs))
    return { messageSecs: this.#inbox.oldestMs / 1000, replySecs: oldestReplyMs / 1000 }
  }

  readonly wake = (): void => {
    this.#quietly(() => this.#enterWaiting())()
  }

  readonly queued = (replies: readonly Waiting[]): void => {
    for (const reply of replies) this.#outboxOf(reply).queue.enter(reply)
  }

  readonly stop = async (graceMs: number): Promise<void> => {
    this.#stopping.abort()
    this.#unsubscribe()
    const ended = new AbortController()
    void this.#options.clock.sleep(graceMs, ended.signal).then(() => this.#cutOff.abort())
    const outboxes = [...this.#outboxes.values()].map(({ queue }) => queue.stop())
    await Promise.all([this.#listeners.stop(), this.#inbox.stop(), ...outboxes])
    ended.abort()
  }

  #outboxOf(account: Account): OutboxWorker {
    const key = accountKey(account)
    const known = this.#outboxes.get(key)
    if (known) return known
    const worker = new OutboxWorker({ ...this.#options, channel: account.channel, cutOff: this.#cutOff.signal })
    this.#outboxes.set(key, worker)
    // A turn may end while the daemon stops: its reply waits for the next start.
    if (this.#stopping.signal.aborted) void worker.queue.stop()
    return worker
  }

  /** Delivers the messages of a connection that the channel holds. */
  #deliver(channel: Channel): Deliver {
    const { clock, telemetry } = this.#options
    return async (message) => {
      const watch = watchIngress({ clock, traces: telemetry.traces(), observe: telemetry.observe }, { channel: channel.name, signed: true })
      const { kept, duplicate } = await this.receive(channel, {
        raw: Buffer.from(JSON.stringify(message)),
        verified: { by: 'fetched by us' },
        receivedAtMs: clock.nowMs(),
        messages: [message],
        trace: watch.trace,
      })
      watch.ended(kept > 0 ? 'kept' : duplicate > 0 ? 'duplicate' : 'denied')
    }
  }

  /** Queues every row that waits in the store. Rows that are queued already keep their place. */
  async #enterWaiting(): Promise<{ readonly messages: number; readonly replies: number }> {
    const { features, store } = this.#options
    const present = new Set(features.channels().map(({ name }) => name))
    const entered = { messages: 0, replies: 0 }
    await eachPage(
      (page) => store.inbox.waiting(page),
      (row) => {
        if (!present.has(row.channel) || !this.#inbox.enter(row)) return
        this.#intake.entered(row)
        entered.messages += 1
      },
    )
    await eachPage(
      (page) => store.outbox.waiting(page),
      (row) => {
        if (present.has(row.channel) && this.#outboxOf(row).queue.enter(row)) entered.replies += 1
      },
    )
    return entered
  }

  async #look(): Promise<void> {
    const { changedElsewhere, features, store } = this.#options
    this.#health.look(features.channels())
    const [changes, foreignVersion] = [this.#changes, await store.foreignVersion()]
    if (changes === this.#changesSeen && foreignVersion === this.#foreignVersion) return
    if (foreignVersion !== this.#foreignVersion) await changedElsewhere()
    await this.#enterWaiting()
    // Set last, so that a failure is followed by another check.
    this.#changesSeen = changes
    this.#foreignVersion = foreignVersion
  }

  /** Returns a function that starts the task and logs its failure. */
  #quietly(task: () => Promise<unknown>): () => void {
    return () => {
      task().catch((error: unknown) => this.#options.log.error('looking for waiting deliveries failed', { error }))
    }
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
