/** A running channel on fake relays, for the tests of this package. */
import type { Channel, Inbound } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { relaynetSection } from '../config.ts'
import feature from '../index.ts'
import { type RelaynetFake, sectionOf } from './index.ts'

export interface RunningChannel {
  readonly channel: Channel
  readonly host: TestHost
  readonly listening: Listening
  readonly received: Inbound[]
  /** The texts of the messages, in the order of their arrival. */
  readonly texts: readonly string[]
  stop(): Promise<void>
}

export interface ChannelOptions {
  readonly host?: TestHostOverrides
  readonly section?: object
  /** Called for each message. Default: it is stored. */
  readonly deliver?: (inbound: Inbound) => Promise<void>
}

/** Starts the channel of the bot on the relays, and listens. */
export function runChannel(
  fakes: readonly RelaynetFake[],
  { host: overrides = {}, section = {}, deliver }: ChannelOptions = {},
): RunningChannel {
  const host = testHost({ fetch, ...overrides })
  const config = v.parse(relaynetSection.schema, { ...sectionOf(...fakes), ...section })
  const parts = feature.build(host, config)
  const [channel] = parts.channels ?? []
  if (!channel) throw new Error('The section of the fake builds no channel.')
  const received: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => {
    await deliver?.(inbound)
    received.push(inbound)
  })
  return {
    channel,
    host,
    listening,
    received,
    get texts() {
      return received.map(({ text }) => text)
    },
    async stop() {
      await listening.stop()
      await parts.close?.()
    },
  }
}
