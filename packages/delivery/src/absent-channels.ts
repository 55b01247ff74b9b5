/**
 * Messages and replies of channels that are not there: removed from the configuration, or not started. They wait for their channel, are
 * reported meanwhile, and are given up when they are too old.
 */
import { ageMs } from '@sluice/kit'
import { type ChannelHealth, isLeaseLost, type OwnedStore, type Waiting, type WaitingSince } from '@sluice/sdk'
import { channelNamed, type DeliveryOptions } from './delivery-options.ts'
import { HOUR_MS } from './inbox/notice.ts'
import { healthOf } from './outbox/channel-health.ts'

const PAGE_ROWS = 5000
const LOOK_PARTS = 20
/** Operators can bring a channel back within this time after a start without it, whatever the age of what waits. */
const TIME_TO_ACT_MS = HOUR_MS
const FAULTS: readonly ChannelHealth['state'][] = ['down', 'degraded']

/** The numbers of what waits. A row may be read twice while its lease is renewed. */
interface Absent {
  readonly messages: Set<number>
  readonly replies: Set<number>
}

type Kind = keyof Absent

export interface AbsentChannelsOptions extends Pick<DeliveryOptions, 'clock' | 'events' | 'features' | 'log'> {
  /** The stores under the leases of this process. */
  readonly owned: () => Iterable<OwnedStore>
  /**
   * Runs `end` and removes the row from its lane, in which it waits if the channel went away while the daemon ran. Resolves to false for a row
   * that runs, which is left as it is.
   */
  readonly ending: (kind: Kind, row: Waiting, end: () => Promise<void>) => Promise<boolean>
}

export class AbsentChannels {
  readonly #options: AbsentChannelsOptions
  /** What was reported last, by channel. */
  #reported: ReadonlyMap<string, string> = new Map()
  /** When a row of each channel was found first, by the monotonic clock. */
  readonly #foundMs = new Map<string, number>()
  #isLooking = false
  /** By the monotonic clock. A look reads all rows of channels that are not there, so it takes at most one part in `LOOK_PARTS` of the time. */
  #nextLookMs = Number.NEGATIVE_INFINITY

  constructor(options: AbsentChannelsOptions) {
    this.#options = options
  }

  /** Gives up what is too old, and reports what waits if that has changed. Never rejects; does nothing while a look is under way. */
  async look(): Promise<void> {
    const { clock, log } = this.#options
    const beganMs = clock.monotonicMs()
    const shards = [...this.#options.owned()]
    // Without a lease this process knows nothing of what waits.
    if (shards.length === 0 || this.#isLooking || beganMs < this.#nextLookMs) return
    this.#isLooking = true
    try {
      const absent = new Map<string, Absent>()
      // All shards at once, so that the store can read their rows together.
      for (const kind of ['messages', 'replies'] as const)
        await Promise.all(shards.map((owned) => this.#lookAt(owned, kind, absent).catch(unlessLost)))
      this.#report(absent)
    } catch (error) {
      log.warn('what waits for channels that are not there cannot be read', { error })
    } finally {
      this.#isLooking = false
      const endedMs = clock.monotonicMs()
      this.#nextLookMs = endedMs + LOOK_PARTS * (endedMs - beganMs)
    }
  }

  async #lookAt(owned: OwnedStore, kind: Kind, absent: Map<string, Absent>): Promise<void> {
    const except = this.#options.features.channels().map(({ name }) => name)
    const port = kind === 'messages' ? owned.inbox : owned.outbox
    for (let after: number | undefined = 0; after !== undefined; ) {
      const rows: readonly (Waiting & WaitingSince)[] = await port.waiting({ after, limit: PAGE_ROWS, except })
      for (const row of rows) {
        const { channel } = row
        if (await this.#isGivenUp(owned, kind, row)) continue
        const waiting = absent.get(channel) ?? { messages: new Set(), replies: new Set() }
        waiting[kind].add(row.number)
        absent.set(channel, waiting)
      }
      after = rows.length < PAGE_ROWS ? undefined : rows.at(-1)?.number
    }
  }

  /** Makes a row a dead letter that is too old. Resolves to false for any other. */
  async #isGivenUp(owned: OwnedStore, kind: Kind, row: Waiting & WaitingSince): Promise<boolean> {
    const { clock, events, features, log, ending } = this.#options
    const { number, channel, sinceMs } = row
    const nowMs = clock.monotonicMs()
    const foundMs = this.#foundMs.get(channel) ?? nowMs
    this.#foundMs.set(channel, foundMs)
    if (ageMs(clock, sinceMs) < features.config().max_age_hours * HOUR_MS || nowMs - foundMs < TIME_TO_ACT_MS) return false
    // The channel may be there again since the row was read.
    if (channelNamed(features, channel)) return false
    const error = `The channel ${channel} is not there: it was removed from the configuration, or does not start`
    const isEnded = await ending(kind, row, async () => {
      const atMs = clock.nowMs()
      if (kind === 'messages') await owned.inbox.markDead(number, { error, atMs })
      else await owned.outbox.giveUp(number, { state: 'dead', error, atMs })
    })
    if (!isEnded) return false
    const [direction, command] = kind === 'messages' ? (['inbound', 'inbox'] as const) : (['outbound', 'outbox'] as const)
    log.error(kind === 'messages' ? 'message given up' : 'reply given up', { channel, [command]: number, error })
    events.emit({ type: 'delivery', direction, channel, number, state: 'dead', error })
    return true
  }

  #report(absent: ReadonlyMap<string, Absent>): void {
    const { events, features, log } = this.#options
    const before = this.#reported
    const now = new Map([...absent].map(([channel, waiting]) => [channel, detailOf(waiting, features.config().max_age_hours)]))
    for (const [channel, detail] of now) {
      if (before.get(channel) === detail) continue
      log.warn('a channel is not there for which messages or replies wait', { channel, detail })
      events.emit({ type: 'channel_health', channel, state: 'down', detail })
    }
    for (const name of before.keys()) {
      const channel = channelNamed(features, name)
      // A channel that is there again and does not work has reported that itself.
      const isFault = channel && FAULTS.includes(healthOf(channel).state)
      if (!now.has(name) && !isFault) events.emit({ type: 'channel_health', channel: name, state: 'ok', detail: null })
    }
    for (const name of this.#foundMs.keys()) if (!now.has(name)) this.#foundMs.delete(name)
    this.#reported = now
  }
}

/** The next owner of the shard looks at it. */
const unlessLost = (error: unknown): void => {
  if (!isLeaseLost(error)) throw error
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`

const detailOf = ({ messages, replies }: Absent, hours: number): string =>
  `it was removed from the configuration, or does not start; ${counted(messages.size, 'message', 'messages')} and ${counted(replies.size, 'reply', 'replies')} wait for it, each at most ${hours} hours`
