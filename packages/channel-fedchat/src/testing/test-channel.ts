/** Test support: the channel connected to a fake homeserver. */
import { AppError, type Channel, type Inbound, type Parts } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { vi } from 'vitest'
import { fedchatSection } from '../config.ts'
import feature from '../index.ts'
import type { FedchatFake } from './fake.ts'
import { sectionOf } from './section.ts'

export interface TestChannel {
  readonly channel: Channel
  readonly parts: Parts
  readonly host: TestHost
  readonly received: readonly Inbound[]
  readonly listening: Listening
  /** Resolves once the channel has its first position, after which messages are delivered. */
  connected(): Promise<void>
  /** Runs a command and resolves to its output. */
  run(name: string, ...args: string[]): Promise<string>
  stop(): Promise<void>
  /** Makes every later delivery await `store` first. */
  storeWith(store: (inbound: Inbound) => Promise<void>): void
}

export function startTestChannel(fake: FedchatFake, config: object = {}, overrides: TestHostOverrides = {}): TestChannel {
  const host = testHost({ fetch, ...overrides })
  const parts = feature.build(host, v.parse(fedchatSection.schema, { ...sectionOf(fake), ...config }))
  const [channel] = parts.channels ?? []
  if (!channel) throw new Error('The feature built no channel')
  const received: Inbound[] = []
  let store: (inbound: Inbound) => Promise<void> = async () => undefined
  const listening = startListening(channel, host, async (inbound) => {
    await store(inbound)
    received.push(inbound)
  })
  return {
    channel,
    parts,
    host,
    received,
    listening,
    connected: () => soon(() => void (listening.health.state === 'ok' || fail(`${listening.health.detail}`))),
    async run(name, ...args) {
      const lines: string[] = []
      const print = (line: string): void => void lines.push(line)
      const context = {
        args,
        cwd: '/',
        json: false,
        by: 'cli:test',
        print,
        warn: print,
        signal: NEVER,
        addToConfig: refuse,
        setInConfig: refuse,
      }
      await parts.commands?.find((command) => command.name === name)?.run(context)
      return lines.join('\n')
    },
    stop: () => listening.stop(),
    storeWith(next) {
      store = next
    },
  }
}

const refuse = (): Promise<never> => Promise.reject(new AppError('invalid_request', 'The configuration is not changed in this test'))

function fail(why: string): never {
  throw new Error(why)
}

export const NEVER = new AbortController().signal

/** Waits up to ten seconds until `check` passes. */
export const soon = (check: () => void | Promise<void>, timeout = 20_000) => vi.waitFor(check, { timeout, interval: 20 })
