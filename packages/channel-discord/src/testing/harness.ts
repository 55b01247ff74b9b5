/** Test support: the channel connected to a fake platform, and a listener that records messages. */
import type { Channel, ChannelHealth, Gap, Inbound } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { discordSection } from '../config.ts'
import feature from '../index.ts'
import { type DiscordFake, type DiscordFakeOptions, startDiscordFake } from './fake.ts'

export function channelOn(fake: Pick<DiscordFake, 'apiUrl' | 'token'>, host: TestHost, changes: object = {}): Channel {
  const config = { bot_token: fake.token, allowed_users: ['*'], api_url: fake.apiUrl, ...changes }
  const [built] = feature.build(host, v.parse(discordSection.schema, config)).channels ?? []
  if (!built) throw new Error('The feature built no channel')
  return built
}

export interface Listening {
  readonly received: Inbound[]
  readonly texts: () => string[]
  /** Makes every delivery reject with `error` until `acceptDeliveries` is called. */
  failDeliveries(error: Error): void
  acceptDeliveries(): void
  health(): ChannelHealth
  readonly gaps: readonly Gap[]
  /** Advances the clock to the next attempt, if the listener waits for it. */
  retry(): Promise<void>
  stop(): Promise<void>
}

export function listenTo(channel: Channel, host: TestHost): Listening {
  const received: Inbound[] = []
  let refusal: Error | undefined
  const running = startListening(channel, host, async (inbound) => {
    if (refusal) throw refusal
    received.push(inbound)
  })
  return {
    received,
    texts: () => received.map(({ text }) => text),
    failDeliveries(error) {
      refusal = error
    },
    acceptDeliveries() {
      refusal = undefined
    },
    health: () => running.health,
    gaps: running.gaps,
    async retry() {
      if (running.retryAtMs !== undefined) await host.advance(running.retryAtMs - host.clock.monotonicMs())
    },
    stop: () => running.stop(),
  }
}

/** Starts a fake platform and a host before each test, and stops all listeners after it. */
export function discordHarness() {
  let fake: DiscordFake
  let host: TestHost
  let stops: (() => Promise<unknown>)[]
  const start = async (options: DiscordFakeOptions = {}): Promise<void> => {
    fake = await startDiscordFake({ nowMs: () => host.clock.nowMs(), ...options })
  }

  beforeEach(async () => {
    host = testHost({ fetch })
    stops = []
    await start()
  })
  afterEach(async () => {
    await Promise.all(stops.map((stop) => stop()))
    await fake.close()
    expect(JSON.stringify(host.logs)).not.toContain('discord-bot-token-01')
  })

  return {
    get fake() {
      return fake
    },
    get host() {
      return host
    },
    /** Replaces the fake by one with these options. */
    async start(options: DiscordFakeOptions) {
      await fake.close()
      await start(options)
    },
    stopAfter: ({ stop }: Listening) => void stops.push(stop),
    /** Builds the channel, listens, and waits until it is connected. */
    async connect(changes: object = {}): Promise<Listening & { readonly channel: Channel }> {
      const channel = channelOn(fake, host, changes)
      const listening = listenTo(channel, host)
      stops.push(listening.stop)
      await until(async () => {
        await listening.retry()
        expect(listening.health().state).toBe('ok')
      })
      return { ...listening, channel }
    },
  }
}

export const until = (expected: () => void | Promise<void>) => vi.waitFor(expected, { timeout: 20_000, interval: 10 })

/** Waits until exactly these texts were delivered, in this order. */
/** Waits until the messages that are to the bot have these texts. */
export const answers = (listening: Listening, ...texts: string[]) =>
  until(async () => {
    await listening.retry()
    expect(listening.received.flatMap(({ text, overheardOnly }) => (overheardOnly ? [] : [text]))).toEqual(texts)
  })

export const receives = (listening: Listening, ...texts: string[]) =>
  until(async () => {
    await listening.retry()
    expect(listening.texts()).toEqual(texts)
  })
