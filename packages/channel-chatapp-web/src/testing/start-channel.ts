/** Runs the channel against its fake, on a real clock, as the daemon does. */
import { systemClock } from '@sluice/kit'
import type { Channel, ChannelLink, Host, Inbound, Services } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue, memorySecrets } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { chatappWebSection } from '../config.ts'
import feature from '../index.ts'
import { startWebFake, type WebFake, type WebFakeOptions } from './fake.ts'
import { sectionOf } from './section.ts'

export interface Running {
  readonly fake: WebFake
  readonly host: Host & Pick<TestHost, 'logs' | 'rebuilds'>
  readonly channel: Channel & { readonly link: ChannelLink }
  readonly got: Inbound[]
  readonly listening: Listening
  /** Resolves to the first message that `holds` accepts. */
  inbound(holds?: (inbound: Inbound) => boolean): Promise<Inbound>
  /** Resolves once the condition holds. */
  until(holds: () => boolean | Promise<boolean>, what: string): Promise<void>
  /** Ends the channel, and starts another one on the same store. */
  restart(more?: object): Promise<Running>
  close(): Promise<void>
}

export interface StartOptions extends WebFakeOptions {
  readonly section?: object
  readonly services?: Partial<Services>
}

/** Includes the time in which the library is loaded, for the first test of a file. */
const LIMIT_MS = 50_000
const LOOK_MS = 5

export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const endMs = performance.now() + LIMIT_MS; !(await holds()); ) {
    if (performance.now() > endMs) throw new Error(`not in time: ${what}`)
    await systemClock.sleep(LOOK_MS)
  }
}

export async function startChannel({ section = {}, services = {}, ...options }: StartOptions = {}): Promise<Running> {
  const fake = await startWebFake(options)
  const host = { ...testHost({ fetch, secrets: memorySecrets(), keyValue: memoryKeyValue(), services }), clock: systemClock }
  return run(fake, host, section)
}

async function run(fake: WebFake, host: Running['host'], section: object): Promise<Running> {
  const config = v.parse(chatappWebSection.schema, { ...sectionOf(fake), ...section })
  const [channel] = feature.build(host, config).channels ?? []
  if (!channel?.link) throw new Error('the section builds no channel')
  const got: Inbound[] = []
  const listening = startListening(channel, host, async (inbound) => void got.push(inbound))
  return {
    fake,
    host,
    channel: channel as Running['channel'],
    got,
    listening,
    async inbound(holds = () => true) {
      await until(() => got.some(holds), 'a message')
      return got.find(holds) as Inbound
    },
    until,
    async restart(more = section) {
      await listening.stop()
      return run(fake, host, more)
    },
    async close() {
      await listening.stop()
      await fake.close()
    },
  }
}
