/** Runs a channel against a fake of the mail API over real sockets, with a clock that only the test advances. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, ChannelHealth, Deliver, Gap, Host, Inbound, KeyValue } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { expect } from 'vitest'
import { mailpushSection } from '../config.ts'
import feature from '../index.ts'
import { type MailpushFake, type MailpushFakeOptions, startMailpushFake } from './fake.ts'

export const SECRETS = ['oauth-token-01', 'webhook-secret-01', 'client-secret-01', 'refresh-token-01', 'oauth-token-granted']

/** One run of the channel, from its start to its stop. */
export interface Run {
  readonly channel: Channel
  readonly host: TestHost
  /** The health that the daemon would report. */
  health(): ChannelHealth
  readonly gaps: readonly Gap[]
  /** The delivered messages in order, with repeats. */
  readonly delivered: readonly Inbound[]
  /** Returns the ids of the delivered messages. */
  ids(): string[]
  /** Sends a push. Resolves once the channel has accepted it. */
  push(): Promise<void>
  /** Resolves once the condition holds. Advances the clock by `stepMs` while nothing happens. */
  until(holds: () => boolean, stepMs?: number): Promise<void>
  stop(): Promise<void>
}

export interface Bench {
  readonly fake: MailpushFake
  readonly keyValue: KeyValue
  /** Builds a channel on the same key-value store and listens, `laterMs` after the time of the last channel. */
  run(options?: { readonly deliver?: Deliver; readonly config?: object; readonly laterMs?: number }): Run
  /** Builds a channel without listening. */
  channel(config?: object, laterMs?: number): { channel: Channel; host: TestHost }
  /** Returns the number of requests of a kind so far, such as `GET /history`. */
  requestCount(kind: string): number
  close(): Promise<void>
}

export const START_MS = Date.UTC(2026, 0, 1)
/** The limit of `until` in real time. */
const WAIT_MS = 50_000

/** Builds the channel of a section with the required keys and the given ones. */
export function buildChannel(host: Host, section: object): Channel {
  const required = { enabled: true, topic: 'projects/p/topics/t' }
  const [channel] = feature.build(host, v.parse(mailpushSection.schema, { ...required, ...section })).channels ?? []
  if (!channel) throw new Error('the section builds no channel')
  return channel
}

export async function startBench(options: MailpushFakeOptions = {}): Promise<Bench> {
  let clock = testClock(START_MS)
  const fake = await startMailpushFake({ nowMs: () => clock.nowMs(), ...options })
  const keyValue = memoryKeyValue()
  const stops: (() => Promise<void>)[] = []

  const channel: Bench['channel'] = (config = {}, laterMs = 0) => {
    clock = testClock(clock.nowMs() + laterMs)
    const host = testHost({ fetch, keyValue, clock })
    const section = {
      oauth_token: 'oauth-token-01',
      webhook_secret: 'webhook-secret-01',
      api_url: fake.url,
      token_url: `${fake.url}/token`,
      allowed_senders: ['example.com'],
      ...config,
    }
    return { channel: buildChannel(host, section), host }
  }

  const run: Bench['run'] = ({ deliver = async () => undefined, config, laterMs } = {}) => {
    const made = channel(config, laterMs)
    const delivered: Inbound[] = []
    const listening = startListening(made.channel, made.host, async (inbound) => {
      delivered.push(inbound)
      await deliver(inbound)
    })
    const stop = async () => {
      await listening.stop()
      for (const secret of SECRETS) expect(JSON.stringify([made.host.logs, listening.health])).not.toContain(secret)
    }
    stops.push(stop)
    return {
      ...made,
      health: () => listening.health,
      gaps: listening.gaps,
      delivered,
      ids: () => delivered.map(({ id }) => id),
      async push() {
        const body = new TextEncoder().encode(fake.push())
        await made.channel.webhook?.parse({ headers: {}, url: new URL('http://localhost/'), body, receivedAtMs: made.host.clock.nowMs() })
      },
      async until(holds, stepMs = 0) {
        const startedMs = performance.now()
        while (!holds()) {
          if (performance.now() - startedMs > WAIT_MS) throw new Error(`the condition never held: ${holds}`)
          await sleep(1)
          // Time advances only while the channel sleeps.
          if (stepMs > 0 && made.host.clock.sleeping > 0) await made.host.advance(stepMs)
        }
      },
      stop,
    }
  }

  return {
    fake,
    keyValue,
    run,
    channel,
    requestCount: (kind) =>
      fake.requests.filter(({ method, path }) => `${method} ${path.replace('/gmail/v1/users/me', '')}` === kind).length,
    async close() {
      for (const stop of stops) await stop()
      await fake.close()
    },
  }
}
