/** A channel against the fake workspace, for the tests of this package. */
import type { Channel, Inbound } from '@sluice/sdk'
import { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, type SlackFake } from '@sluice/testkit/fakes/slack'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { slackSection } from '../config.ts'
import feature from '../index.ts'

export interface Bot {
  readonly channel: Channel
  readonly host: TestHost
  /** What was delivered, in order. */
  readonly heard: readonly Inbound[]
  /** Ends the listening, as a stop of the daemon does. */
  stop(): Promise<void>
  /** From now on `deliver` does this first. */
  keep(inbound: (inbound: Inbound) => Promise<void>): void
}

export interface BotOptions {
  readonly config?: object
  readonly host?: TestHostOverrides
}

export const TOKENS = { bot_token: SLACK_BOT_TOKEN, app_token: SLACK_APP_TOKEN }

export function createBot(fake: SlackFake, { config = {}, host: overrides = {} }: BotOptions = {}): Bot & { listen(): Bot } {
  const host = testHost({ fetch, ...overrides })
  const section = v.parse(slackSection.schema, { ...TOKENS, api_url: fake.apiUrl, ...config })
  const [channel] = feature.build(host, section).channels ?? []
  if (!channel?.listen) throw new Error('no channel was built')
  const abort = new AbortController()
  const heard: Inbound[] = []
  let ended: Promise<void> = Promise.resolve()
  let keep: (inbound: Inbound) => Promise<void> = async () => undefined
  const bot = {
    channel,
    host,
    heard,
    listen() {
      ended =
        channel.listen?.(async (inbound) => {
          await keep(inbound)
          heard.push(inbound)
        }, abort.signal) ?? ended
      return bot
    },
    async stop() {
      abort.abort()
      await ended
    },
    keep(next: typeof keep) {
      keep = next
    },
  }
  return bot
}
