/** Test support: the channel connected to a fake workspace. */
import type { Channel, ChannelHealth, Gap, Inbound } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { vi } from 'vitest'
import { slackSection } from '../config.ts'
import feature from '../index.ts'
import { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, type SlackFake } from './fake.ts'

export interface TestChannel {
  readonly channel: Channel
  readonly host: TestHost
  /** The delivered messages, in order. */
  readonly received: readonly Inbound[]
  health(): ChannelHealth
  readonly gaps: readonly Gap[]
  /** The time of the clock at which the next attempt begins; undefined while a connection runs. */
  retryAtMs(): number | undefined
  /** Stops listening, as the daemon does when it stops. */
  stop(): Promise<void>
  /** Makes every later delivery await `store` first. */
  storeWith(store: (inbound: Inbound) => Promise<void>): void
}

export interface TestChannelOptions {
  readonly config?: object
  readonly host?: TestHostOverrides
}

export const TOKENS = { bot_token: SLACK_BOT_TOKEN, app_token: SLACK_APP_TOKEN }

export function createTestChannel(
  fake: SlackFake,
  { config = {}, host: overrides = {} }: TestChannelOptions = {},
): TestChannel & { listen(): TestChannel } {
  const host = testHost({ fetch, ...overrides })
  const section = v.parse(slackSection.schema, { ...TOKENS, api_url: fake.apiUrl, ...config })
  const [channel] = feature.build(host, section).channels ?? []
  if (!channel?.listen) throw new Error('The feature built no channel')
  const received: Inbound[] = []
  let listening: Listening | undefined
  let store: (inbound: Inbound) => Promise<void> = async () => undefined
  const bot = {
    channel,
    host,
    received,
    listen() {
      listening = startListening(channel, host, async (inbound) => {
        await store(inbound)
        received.push(inbound)
      })
      return bot
    },
    health: () => listening?.health ?? { state: 'connecting' as const },
    get gaps() {
      return listening?.gaps ?? []
    },
    retryAtMs: () => listening?.retryAtMs,
    async stop() {
      await listening?.stop()
    },
    storeWith(next: typeof store) {
      store = next
    },
  }
  return bot
}

/** Waits up to twenty seconds until `check` passes. */
export const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000 })
