/** Runs a channel against its fake platform through outages, on a clock that stops while the channel waits for the platform. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, ChannelHealth, Deliver, Inbound } from '@sluice/sdk'
import * as v from 'valibot'
import type { ChannelSubject, ListenPlatform, ListenSubject } from '../channel-subject.ts'
import { testClock } from '../clock.ts'
import { type TestHost, testHost } from '../host.ts'
import { type Listening, startListening } from '../listening.ts'
import { memoryKeyValue } from '../memory-store.ts'

/** How a platform fails: it cannot be reached, or it accepts connections and breaks each of them after some milliseconds. */
export type Outage = 'unreachable' | { readonly lastsMs: number }

/**
 * The rounds of the event loop, each of at least a millisecond, after which the clock moves: an attempt then waits for time and not for the
 * platform, which runs in this process. A busy machine makes the rounds longer, and not fewer.
 */
const IDLE_ROUNDS = 20
const STEP_MS = 250
/** The real time after which an expected state counts as missing, unless a test of the rules sets a shorter one. */
const LIMIT_MS = 10_000

/** A platform and one run of the channel on it. */
export class OutageBench {
  readonly platform: ListenPlatform
  readonly host: TestHost
  /** The delivered messages, repeats included. */
  readonly delivered: Inbound[] = []
  /** How often the channel was asked to connect. */
  connects = 0
  readonly #subject: ChannelSubject
  readonly #limitMs: number
  #listening: Listening | undefined
  #channel: Channel | undefined

  private constructor(subject: ChannelSubject, platform: ListenPlatform, host: TestHost, limitMs: number) {
    this.#subject = subject
    this.#limitMs = limitMs
    this.platform = platform
    this.host = host
  }

  static async open(subject: ChannelSubject, listen: ListenSubject, limitMs = LIMIT_MS): Promise<OutageBench> {
    const clock = testClock()
    if (!listen.platform) throw new Error(`${subject.feature.id} names no platform whose connections can be broken`)
    const platform = await listen.platform(clock.nowMs)
    const host = testHost({ fetch, keyValue: memoryKeyValue(), clock, ...platform.host })
    return new OutageBench(subject, platform, host, limitMs)
  }

  get health(): ChannelHealth {
    return this.#listening?.health ?? { state: 'connecting' }
  }

  /** The last lines of the delivered messages, each message once, in order. */
  get texts(): string[] {
    return [...new Map(this.delivered.map(({ id, text }) => [id, text.split('\n').at(-1) ?? ''])).values()]
  }

  /** Builds a channel on the stored values, and listens. Returns a function that stops it. */
  listen(deliver: Deliver = async () => undefined, random?: () => number): () => Promise<void> {
    const { feature } = this.#subject
    const { channels = [] } = feature.build(this.host, feature.section ? v.parse(feature.section.schema, this.platform.config) : {})
    const [channel] = channels
    if (!channel?.listen) throw new Error(`${feature.id} does not listen`)
    const { listen } = channel
    const counted: Channel = {
      ...channel,
      listen: (...args) => {
        this.connects += 1
        return listen.apply(channel, args)
      },
    }
    const take: Deliver = async (inbound) => {
      this.delivered.push(inbound)
      await deliver(inbound)
    }
    const listening = startListening(counted, this.host, take, random)
    this.#listening = listening
    this.#channel = channel
    return () => listening.stop()
  }

  /** Lets time pass in steps of `stepMs` until `holds`, at most until the clock shows `endMs`. Returns the time of the clock. */
  async until(holds: () => boolean, endMs = Number.POSITIVE_INFINITY, stepMs = STEP_MS): Promise<number> {
    const { clock } = this.host
    const startedMs = performance.now()
    for (let rounds = 0; !holds() && clock.monotonicMs() < endMs; ) {
      const retryAtMs = this.#listening?.retryAtMs
      const nowMs = clock.monotonicMs()
      if (retryAtMs === undefined && rounds < IDLE_ROUNDS) {
        rounds += 1
        await sleep(1)
      } else {
        rounds = 0
        await clock.advance(Math.min(retryAtMs ?? nowMs + stepMs, endMs) - nowMs)
      }
      if (endMs === Number.POSITIVE_INFINITY && performance.now() - startedMs > this.#limitMs) throw new Error(`never true: ${holds}`)
    }
    return clock.monotonicMs()
  }

  /** Resolves once the channel is connected. Returns the time of the clock. */
  connected(): Promise<number> {
    return this.until(() => this.health.state === 'ok')
  }

  /** Counts how often the channel connects while the platform fails for `ms`. */
  async connectsDuring(outage: Outage, ms: number): Promise<number> {
    const before = this.connects
    const { clock } = this.host
    const endMs = clock.monotonicMs() + ms
    while (clock.monotonicMs() < endMs) {
      if (outage !== 'unreachable') await clock.advance(outage.lastsMs)
      await this.breakDown()
      if (outage === 'unreachable') await this.until(() => false, endMs)
      this.platform.fake.cut()
      await this.until(() => this.health.state === 'ok', endMs)
    }
    return this.connects - before
  }

  /** Makes the platform unreachable. Resolves once the channel has noticed. */
  async breakDown(): Promise<void> {
    this.platform.fake.cut({ isDown: true })
    await this.poke()
    await this.until(() => this.health.state !== 'ok')
  }

  /** Makes a channel that polls rarely look at the platform at once. */
  async poke(): Promise<void> {
    if (this.#channel) await this.platform.poke?.(this.#channel)
  }

  async close(): Promise<void> {
    await this.#listening?.stop()
    await this.platform.fake.close()
  }
}
