/** Test support: the channel connected to a fake server, and a listener that records messages. */
import type { Channel, ChannelHealth, Gap, Inbound } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { mattermostSection } from '../config.ts'
import feature from '../index.ts'
import { MATTERMOST_TOKEN, type MattermostFake, startMattermostFake } from './fake.ts'
import { sectionOf } from './section.ts'

export function channelOn(fake: Pick<MattermostFake, 'url'>, host: TestHost, changes: object = {}): Channel {
  const [built] = feature.build(host, v.parse(mattermostSection.schema, { ...sectionOf(fake), ...changes })).channels ?? []
  if (!built) throw new Error('The feature built no channel')
  return built
}

export interface Listening {
  readonly channel: Channel
  readonly received: Inbound[]
  readonly texts: () => string[]
  /** Makes every delivery wait for `store` first. */
  storeWith(store: (inbound: Inbound) => Promise<void>): void
  health(): ChannelHealth
  readonly gaps: readonly Gap[]
  stop(): Promise<void>
}

/** Starts a fake server and a host before each test, and stops all listeners after it. */
export function mattermostHarness() {
  let fake: MattermostFake
  let host: TestHost
  let stops: (() => Promise<unknown>)[]

  beforeEach(async () => {
    host = testHost({ fetch })
    stops = []
    fake = await startMattermostFake({ nowMs: () => host.clock.nowMs() })
  })
  afterEach(async () => {
    await Promise.all(stops.map((stop) => stop()))
    await fake.close()
    expect(JSON.stringify(host.logs)).not.toContain(MATTERMOST_TOKEN)
  })

  return {
    get fake() {
      return fake
    },
    get host() {
      return host
    },
    channel: (changes: object = {}): Channel => channelOn(fake, host, changes),
    /** Builds the channel, listens, and waits until it is connected. */
    async connect(changes: object = {}): Promise<Listening> {
      const channel = channelOn(fake, host, changes)
      const received: Inbound[] = []
      let store = async (_inbound: Inbound): Promise<void> => undefined
      const running = startListening(channel, host, async (inbound) => {
        await store(inbound)
        received.push(inbound)
      })
      stops.push(() => running.stop())
      const waits = setInterval(() => {
        if (running.retryAtMs !== undefined) void host.advance(running.retryAtMs - host.clock.monotonicMs())
      }, 20)
      stops.push(async () => clearInterval(waits))
      const listening = {
        channel,
        received,
        texts: () => received.map(({ text }) => text),
        storeWith(next: typeof store) {
          store = next
        },
        health: () => running.health,
        gaps: running.gaps,
        stop: () => running.stop(),
      }
      await until(() => expect(listening.health().state).toBe('ok'))
      return listening
    },
  }
}

export const until = (expected: () => void | Promise<void>) => vi.waitFor(expected, { timeout: 20_000, interval: 10 })

/** Waits until exactly these texts were delivered, in this order. */
export const receives = (listening: Listening, ...texts: string[]) => until(() => expect(listening.texts()).toEqual(texts))
