/** The channel against the fake provider over real sockets, with a clock that stands still. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Channel, Deliver, Inbound, KeyValue } from '@sluice/sdk'
import { startTelegramFake, TELEGRAM_TOKEN, type TelegramFake, type TelegramFakeOptions } from '@sluice/testkit/fakes/telegram'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { expect } from 'vitest'
import { telegramSection } from '../config.ts'
import { telegram } from '../telegram.ts'

/** One run of the channel: from its start to its stop. */
export interface Run {
  readonly channel: Channel
  readonly host: TestHost
  /** What was delivered, in order, repeats included. */
  readonly delivered: readonly Inbound[]
  texts(): string[]
  /** Resolves once it holds; time passes meanwhile, `stepMs` at a time. */
  until(holds: () => boolean, stepMs?: number): Promise<void>
  /** Until it polls, and has nothing more to take. */
  idle(stepMs?: number): Promise<void>
  stop(): Promise<void>
}

export interface Bench {
  readonly fake: TelegramFake
  readonly keyValue: KeyValue
  /** Builds the channel anew, on the same keys and values, and listens. */
  run(options?: { readonly deliver?: Deliver; readonly config?: object }): Run
  /** The channel, not listening. */
  channel(config?: object): { channel: Channel; host: TestHost }
  /** How many calls of that method came so far. */
  asked(method: string): number
  close(): Promise<void>
}

/** In real time, which the sockets need; only what never holds uses it up. */
const WAIT_MS = 10_000

export async function startBench(options: TelegramFakeOptions = {}): Promise<Bench> {
  const fake = await startTelegramFake(options)
  const keyValue = memoryKeyValue()
  const stops: (() => Promise<void>)[] = []

  const channel: Bench['channel'] = (config = {}) => {
    const host = testHost({ fetch, keyValue })
    const section = v.parse(telegramSection.schema, { bot_token: TELEGRAM_TOKEN, api_url: `${fake.url}/`, allowed_users: ['*'], ...config })
    return { channel: telegram(host, section), host }
  }

  const run: Bench['run'] = ({ deliver = async () => undefined, config } = {}) => {
    const made = channel(config)
    const { clock } = made.host
    const delivered: Inbound[] = []
    const abort = new AbortController()
    const ended = made.channel.listen?.(async (inbound) => {
      delivered.push(inbound)
      await deliver(inbound)
    }, abort.signal)
    const until: Run['until'] = async (holds, stepMs = 0) => {
      const startedMs = performance.now()
      while (!holds()) {
        if (performance.now() - startedMs > WAIT_MS) throw new Error(`it never held: ${holds}`)
        await sleep(1)
        // Only while nothing is under way: then whatever is waited for takes time.
        if (stepMs > 0 && clock.sleeping > 0) await made.host.advance(stepMs)
      }
    }
    const stop = async () => {
      abort.abort()
      await ended
      expect(JSON.stringify([made.host.logs, made.channel.health?.()])).not.toContain(TELEGRAM_TOKEN.slice(7))
    }
    stops.push(stop)
    return {
      ...made,
      delivered,
      texts: () => delivered.map(({ text }) => text),
      until,
      idle: (stepMs) => until(() => made.channel.health?.().state === 'ok' && fake.polled && fake.waiting.length === 0, stepMs),
      stop,
    }
  }

  return {
    fake,
    keyValue,
    run,
    channel,
    asked: (method) => fake.requests.filter(({ path }) => path.endsWith(`/${method}`)).length,
    async close() {
      for (const stop of stops) await stop()
      await fake.close()
    },
  }
}
