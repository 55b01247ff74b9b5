/** A channel against the fake provider over real sockets, with a clock that stands still. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, Deliver, Inbound, KeyValue } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type MailpushFake, type MailpushFakeOptions, startMailpushFake } from '@sluice/testkit/fakes/mailpush'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { expect } from 'vitest'
import { mailpushSection } from '../config.ts'
import { createMailpush } from '../mailpush.ts'

export const SECRETS = ['oauth-token-01', 'webhook-secret-01', 'client-secret-01', 'refresh-token-01', 'oauth-token-granted']

/** One run of the channel: from its start to its stop. */
export interface Run {
  readonly channel: Channel
  readonly host: TestHost
  /** What was delivered, in order, repeats included. */
  readonly delivered: readonly Inbound[]
  /** The ids of what was delivered. */
  ids(): string[]
  /** The provider pushes. Resolves once the channel has taken it. */
  push(): Promise<void>
  /** Resolves once it holds; time passes meanwhile, `stepMs` at a time. */
  until(holds: () => boolean, stepMs?: number): Promise<void>
  stop(): Promise<void>
}

export interface Bench {
  readonly fake: MailpushFake
  readonly keyValue: KeyValue
  /** Builds the channel anew, on the same keys and values, and listens; `laterMs` after the time of the last one. */
  run(options?: { readonly deliver?: Deliver; readonly config?: object; readonly laterMs?: number }): Run
  /** The channel, not listening. */
  channel(config?: object, laterMs?: number): { channel: Channel; host: TestHost }
  /** How many requests of that kind came so far, such as `GET /history`. */
  asked(what: string): number
  close(): Promise<void>
}

export const START_MS = Date.UTC(2026, 0, 1)
/** In real time, which the sockets need; only what never holds uses it up. */
const WAIT_MS = 10_000

export async function startBench(options: MailpushFakeOptions = {}): Promise<Bench> {
  let clock = testClock(START_MS)
  const fake = await startMailpushFake({ nowMs: () => clock.nowMs(), ...options })
  const keyValue = memoryKeyValue()
  const stops: (() => Promise<void>)[] = []

  const channel: Bench['channel'] = (config = {}, laterMs = 0) => {
    clock = testClock(clock.nowMs() + laterMs)
    const host = testHost({ fetch, keyValue, clock })
    const section = v.parse(mailpushSection.schema, {
      enabled: true,
      topic: 'projects/p/topics/t',
      oauth_token: 'oauth-token-01',
      webhook_secret: 'webhook-secret-01',
      api_url: fake.url,
      token_url: `${fake.url}/token`,
      allowed_senders: ['example.com'],
      ...config,
    })
    return { channel: createMailpush(host, section), host }
  }

  const run: Bench['run'] = ({ deliver = async () => undefined, config, laterMs } = {}) => {
    const made = channel(config, laterMs)
    const delivered: Inbound[] = []
    const abort = new AbortController()
    const ended = made.channel.listen?.(async (inbound) => {
      delivered.push(inbound)
      await deliver(inbound)
    }, abort.signal)
    const stop = async () => {
      abort.abort()
      await ended
      for (const secret of SECRETS) expect(JSON.stringify([made.host.logs, made.channel.health?.()])).not.toContain(secret)
    }
    stops.push(stop)
    return {
      ...made,
      delivered,
      ids: () => delivered.map(({ id }) => id),
      async push() {
        const body = new TextEncoder().encode(fake.push())
        await made.channel.webhook?.parse({ headers: {}, url: new URL('http://localhost/'), body, receivedAtMs: made.host.clock.nowMs() })
      },
      async until(holds, stepMs = 0) {
        const startedMs = performance.now()
        while (!holds()) {
          if (performance.now() - startedMs > WAIT_MS) throw new Error(`it never held: ${holds}`)
          await sleep(1)
          // Only while nothing is under way: then whatever is waited for takes time.
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
    asked: (what) => fake.requests.filter(({ method, path }) => `${method} ${path.replace('/gmail/v1/users/me', '')}` === what).length,
    async close() {
      for (const stop of stops) await stop()
      await fake.close()
    },
  }
}
