/** Test support: the channel connected to a fake workspace. */
import type { Channel, Inbound } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
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
  const abort = new AbortController()
  const received: Inbound[] = []
  let ended: Promise<void> = Promise.resolve()
  let store: (inbound: Inbound) => Promise<void> = async () => undefined
  const bot = {
    channel,
    host,
    received,
    listen() {
      ended =
        channel.listen?.(async (inbound) => {
          await store(inbound)
          received.push(inbound)
        }, abort.signal) ?? ended
      return bot
    },
    async stop() {
      abort.abort()
      await ended
    },
    storeWith(next: typeof store) {
      store = next
    },
  }
  return bot
}

/** Waits up to five seconds until `check` passes. */
export const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 5000 })
