/** Durable delivery, put together: what came in before the last stop is taken up, what comes is kept, what is over is forgotten. */

import { every } from '@sluice/kit'
import type { Channel, Deliver, Inbound, Waiting } from '@sluice/sdk'
import { isAnswerLane } from './answer-lane.ts'
import type { DeliveryDeps } from './channels.ts'
import { type Account, accountKey, type DeliveryQueue } from './delivery-queue.ts'
import { createHealthWatch } from './health-watch.ts'
import { createInboxRunner } from './inbox-runner.ts'
import { createIngress, type Ingress } from './ingress.ts'
import { createListeners } from './listeners.ts'
import { createOutboxRunner } from './outbox-runner.ts'
import { watchIngress } from './watch-ingress.ts'

/** What waits for its turn, or to be sent. */
export interface DeliveryQueues {
  load(): { readonly messages: number; readonly replies: number }
  /** How long the oldest message has waited for the end of its turn, and the oldest reply to be sent; since the start at most. */
  ages(): { readonly messageSecs: number; readonly replySecs: number }
  /** Looks for what has been made due in the store. */
  wake(): void
  /** Takes up replies that were just queued. */
  queued(replies: readonly Waiting[]): void
}

export interface Deliveries extends DeliveryQueues {
  readonly receive: Ingress['receive']
  /** Starts nothing more, and takes nothing more in. Resolves once what runs has ended; sends are cut off after `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** How often other processes' changes and a reloaded configuration are looked for. */
const LOOK_MS = 1000
const PAGE_ROWS = 5000

/** Takes up what the last run left behind. One per data directory at a time. */
export async function startDeliveries(deps: DeliveryDeps): Promise<Deliveries> {
  const { store, clock, log } = deps
  const stopping = new AbortController()
  const cutOff = new AbortController()
  const outboxes = new Map<string, DeliveryQueue>()

  const outboxOf = (row: Account): DeliveryQueue => {
    const key = accountKey(row)
    const known = outboxes.get(key)
    if (known) return known
    const made = createOutboxRunner({ ...deps, channel: row.channel, cutOff: cutOff.signal })
    outboxes.set(key, made)
    // A turn may end while the daemon stops: its reply waits for the next start.
    if (stopping.signal.aborted) void made.stop()
    return made
  }
  const queued = (replies: readonly Waiting[]): void => {
    for (const reply of replies) outboxOf(reply).enter(reply)
  }
  const runnerOptions = {
    ...deps,
    stopping: stopping.signal,
    onDone: (row: Waiting) => ingress.left(row),
    onReplies: queued,
  }
  const inbox = createInboxRunner(runnerOptions)
  const answers = deps.createAnswerRunner(runnerOptions)
  const ingress = createIngress({
    inbox: store.inbox,
    turns: inbox,
    replies: answers,
    clock,
    log,
    config: deps.config,
    answered: deps.approvals.answered,
  })

  /** Puts what waits in the store into its lanes; what is there already stays where it is. */
  const takeUp = async (): Promise<{ messages: number; replies: number }> => {
    const present = new Set(deps.channels().map(({ name }) => name))
    const taken = { messages: 0, replies: 0 }
    await eachPage(store.inbox.waiting, (row) => {
      const queue = isAnswerLane(row.lane) ? answers : inbox
      if (!present.has(row.channel) || !queue.enter(row)) return
      ingress.found(row)
      taken.messages += 1
    })
    await eachPage(store.outbox.waiting, (row) => {
      if (present.has(row.channel) && outboxOf(row).enter(row)) taken.replies += 1
    })
    return taken
  }

  const deliver =
    (channel: Channel): Deliver =>
    async (message: Inbound) => {
      const raw = Buffer.from(JSON.stringify(message))
      const watch = watchIngress({ ...deps, traces: deps.traces() }, { channel: channel.name, signed: true })
      const reception = await ingress.receive(channel, {
        raw,
        verified: { by: 'fetched by us' },
        receivedAtMs: clock.nowMs(),
        messages: [message],
        trace: watch.trace,
      })
      watch.ended(reception.kept > 0 ? 'kept' : reception.duplicate > 0 ? 'duplicate' : 'denied')
    }
  const listeners = createListeners({ clock, log, deliver })

  const repeatable = deps.channels().flatMap(({ name, limits }) => (limits.dedupesClientIds ? [name] : []))
  const ambiguous = await store.outbox.recover({ repeatable, atMs: clock.nowMs() })
  if (ambiguous.length > 0)
    log.warn('replies were under way when the last run ended: nobody can tell whether they were sent', {
      replies: ambiguous.length,
      see: 'sluice outbox dead',
    })
  const found = await takeUp()
  if (found.messages + found.replies > 0) log.info('taking up deliveries the last run left unfinished', found)

  let generation = deps.generation()
  let foreign = await store.foreignVersion()
  listeners.set(deps.channels())
  const watchHealth = createHealthWatch(deps)
  const look = async (): Promise<void> => {
    watchHealth(deps.channels())
    const [nextGeneration, nextForeign] = [deps.generation(), await store.foreignVersion()]
    if (nextGeneration === generation && nextForeign === foreign) return
    if (nextGeneration !== generation) listeners.set(deps.channels())
    if (nextForeign !== foreign) await deps.changedElsewhere()
    await takeUp()
    // Not before: what could not be taken up is looked at again.
    generation = nextGeneration
    foreign = nextForeign
  }
  const quietly = (what: string, task: () => Promise<void>) => () => {
    task().catch((error: unknown) => log.error(what, { error }))
  }
  void every(clock, LOOK_MS, stopping.signal, quietly('the deliveries could not be looked at', look))

  return {
    receive: ingress.receive,
    queued,
    wake: quietly('the deliveries could not be looked at', async () => void (await takeUp())),
    load() {
      const replies = [...outboxes.values()].reduce((sum, { size }) => sum + size, 0)
      return { messages: inbox.size + answers.size, replies }
    },
    ages() {
      const secs = (queues: readonly DeliveryQueue[]) => Math.max(0, ...queues.map(({ oldestMs }) => oldestMs)) / 1000
      return { messageSecs: secs([inbox, answers]), replySecs: secs([...outboxes.values()]) }
    },
    async stop(graceMs) {
      stopping.abort()
      const enough = new AbortController()
      void clock.sleep(graceMs, enough.signal).then(() => cutOff.abort())
      await Promise.all([listeners.stop(), inbox.stop(), answers.stop(), ...[...outboxes.values()].map((queue) => queue.stop())])
      enough.abort()
    },
  }
}

async function eachPage(
  read: (options: { after: number; limit: number }) => Promise<readonly Waiting[]>,
  take: (row: Waiting) => void,
): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await read({ after, limit: PAGE_ROWS })
    for (const row of rows) take(row)
    const last = rows.at(-1)
    if (!last || rows.length < PAGE_ROWS) return
    after = last.number
  }
}
