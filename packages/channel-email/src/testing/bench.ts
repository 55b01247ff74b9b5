/** Runs the channel against the fake, on a clock that shortens pauses, for tests. */
import { systemClock } from '@sluice/kit'
import type { Channel, Clock, Deliver, Host, Inbound } from '@sluice/sdk'
import { type LogLine, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { emailSection } from '../config.ts'
import feature from '../index.ts'
import { type EmailFake, type EmailFakeOptions, startEmailFake } from './fake.ts'
import { sectionOf } from './section.ts'

export interface Bot {
  readonly channel: Channel
  readonly received: Inbound[]
  readonly listening: Listening
  readonly logs: readonly LogLine[]
}

export interface Bench {
  readonly fake: EmailFake
  readonly host: Host & { readonly logs: readonly LogLine[] }
  /** Builds the channel, with these changes to its section. */
  channel(changes?: object): Channel
  /** Builds the channel and listens. */
  listen(changes?: object, deliver?: Deliver): Bot
  close(): Promise<void>
}

/** Pauses before another attempt are shorter than this; limits of the time that a server may take are longer, and stay as they are. */
const PAUSE_MS_MAX = 10_000
const SHORTENED = 10

/** The real clock, on which pauses take a tenth of their time. */
const hastyClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms < PAUSE_MS_MAX ? ms / SHORTENED : ms, signal),
}

export async function startBench(options: EmailFakeOptions = {}, overrides: Partial<Host> = {}): Promise<Bench> {
  const fake = await startEmailFake(options)
  const base = testHost({ fetch, keyValue: memoryKeyValue() })
  const host = { ...base, clock: hastyClock, ...overrides }
  const running: Listening[] = []
  const channel = (changes: object = {}): Channel => {
    const section = v.parse(emailSection.schema, { ...sectionOf(fake), ...changes })
    const [built] = feature.build(host, section).channels ?? []
    if (!built) throw new Error('The section builds no channel.')
    return built
  }
  return {
    fake,
    host,
    channel,
    listen(changes, deliver = async () => undefined) {
      const built = channel(changes)
      const received: Inbound[] = []
      const listening = startListening(built, host, async (inbound) => {
        await deliver(inbound)
        received.push(inbound)
      })
      running.push(listening)
      return { channel: built, received, listening, logs: base.logs }
    },
    async close() {
      await Promise.all(running.map((listening) => listening.stop()))
      await fake.close()
    },
  }
}
