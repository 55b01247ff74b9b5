/** Test support: the channel connected to its fake over a long connection. */
import type { Channel, ChannelHealth, Gap, Inbound } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { vi } from 'vitest'
import { WORKCHAT, workchatSection } from '../config.ts'
import feature from '../index.ts'
import { socketSection } from './section.ts'

export interface TestChannel {
  readonly channel: Channel
  readonly host: TestHost
  /** The delivered messages, in order. */
  readonly received: readonly Inbound[]
  readonly gaps: readonly Gap[]
  health(): ChannelHealth
  retryAtMs(): number | undefined
  listen(): TestChannel
  stop(): Promise<void>
  /** Makes every later delivery await `store` first. */
  storeWith(store: (inbound: Inbound) => Promise<void>): void
}

export interface TestChannelOptions {
  readonly config?: object
  readonly host?: TestHostOverrides
  readonly path?: string
}

export function createTestChannel(
  fake: { readonly url: string },
  { config = {}, host: overrides = {}, path = WORKCHAT }: TestChannelOptions = {},
): TestChannel {
  const host = testHost({ fetch, ...overrides })
  const section = v.parse(workchatSection.schema, { ...socketSection(fake), ...config })
  const [channel] = feature.build(host, section, path).channels ?? []
  if (!channel) throw new Error('The feature built no channel')
  const received: Inbound[] = []
  let listening: Listening | undefined
  let store: (inbound: Inbound) => Promise<void> = async () => undefined
  const bot: TestChannel = {
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
    health: () => listening?.health ?? { state: 'connecting' },
    get gaps() {
      return listening?.gaps ?? []
    },
    retryAtMs: () => listening?.retryAtMs,
    async stop() {
      await listening?.stop()
    },
    storeWith(next) {
      store = next
    },
  }
  return bot
}

/** Waits up to twenty seconds until `check` passes. */
export const soon = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000 })
