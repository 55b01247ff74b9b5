/** Test support: the channel connected to a fake Bot API over real sockets, with a clock that only tests advance. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, ChannelHealth, Deliver, Gap, Inbound, KeyValue } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { expect } from 'vitest'
import { telegramSection } from '../config.ts'
import feature from '../index.ts'
import { startTelegramFake, TELEGRAM_TOKEN, type TelegramFake, type TelegramFakeOptions } from './fake.ts'

/** One run of the channel, from its start until it is stopped. */
export interface Run {
  readonly channel: Channel
  readonly host: TestHost
  /** The health that the daemon would report. */
  health(): ChannelHealth
  readonly gaps: readonly Gap[]
  /** The delivered messages, in order, repeated ones included. */
  readonly delivered: readonly Inbound[]
  texts(): string[]
  /** Resolves once `condition` returns true. Advances the clock by `stepMs` at a time meanwhile. */
  until(condition: () => boolean, stepMs?: number): Promise<void>
  /** Resolves once the channel polls and has taken every update. */
  idle(stepMs?: number): Promise<void>
  stop(): Promise<void>
}

export interface Harness {
  readonly fake: TelegramFake
  readonly keyValue: KeyValue
  /** Builds another channel on the same stored values, and listens. */
  run(options?: { readonly deliver?: Deliver; readonly config?: object }): Run
  /** Builds a channel that does not listen. */
  channel(config?: object): { channel: Channel; host: TestHost }
  /** The number of calls of a method so far. */
  callsOf(method: string): number
  close(): Promise<void>
}

/** A limit in real time, which is reached only by a condition that never becomes true. */
const WAIT_MS = 50_000
/** The sleeps that are always pending: the listener stores positions every few seconds. */
export const STORING = 1

export async function startHarness(options: TelegramFakeOptions = {}): Promise<Harness> {
  const fake = await startTelegramFake(options)
  const keyValue = memoryKeyValue()
  const stops: (() => Promise<void>)[] = []

  const channel: Harness['channel'] = (config = {}) => {
    const host = testHost({ fetch, keyValue })
    const section = v.parse(telegramSection.schema, { bot_token: TELEGRAM_TOKEN, api_url: `${fake.url}/`, allowed_users: ['*'], ...config })
    const [built] = feature.build(host, section).channels ?? []
    if (!built) throw new Error('The feature built no channel')
    return { channel: built, host }
  }

  const run: Harness['run'] = ({ deliver = async () => undefined, config } = {}) => {
    const made = channel(config)
    const { clock } = made.host
    const delivered: Inbound[] = []
    const listening = startListening(made.channel, made.host, async (inbound) => {
      delivered.push(inbound)
      await deliver(inbound)
    })
    const until: Run['until'] = async (condition, stepMs = 0) => {
      const startedMs = performance.now()
      while (!condition()) {
        if (performance.now() - startedMs > WAIT_MS) throw new Error(`the condition never became true: ${condition}`)
        await sleep(1)
        // Advances the clock only while a delay is pending, so that no timeout expires during a request.
        if (stepMs > 0 && clock.sleeping > STORING) await made.host.advance(stepMs)
      }
    }
    const stop = async () => {
      await listening.stop()
      expect(JSON.stringify([made.host.logs, listening.health])).not.toContain(TELEGRAM_TOKEN.slice(7))
    }
    stops.push(stop)
    return {
      ...made,
      health: () => listening.health,
      gaps: listening.gaps,
      delivered,
      texts: () => delivered.map(({ text }) => text),
      until,
      idle: (stepMs) => until(() => listening.health.state === 'ok' && fake.polled && fake.waiting.length === 0, stepMs),
      stop,
    }
  }

  return {
    fake,
    keyValue,
    run,
    channel,
    callsOf: (method) => fake.requests.filter(({ path }) => path.endsWith(`/${method}`)).length,
    async close() {
      for (const stop of stops) await stop()
      await fake.close()
    },
  }
}
