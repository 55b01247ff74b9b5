/** The channel as the conformance suite tests it: in its own section, with a message of a person and one in a group. */
import type { ChannelSubject } from '@sluice/testkit/channel'
import { memorySecrets } from '@sluice/testkit/memory-store'
import { afterAll } from 'vitest'
import { secondSection } from '../config.ts'
import feature from '../index.ts'
import { chatappWebArrivals } from './arrivals.ts'
import { GROUP, startWebFake } from './fake.ts'
import { sectionOf } from './section.ts'

/** The time at which the clock of each test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const [ADA, BOB] = ['15550002222', '15550003333']

export async function subject(): Promise<ChannelSubject> {
  const first = await startWebFake({ nowMs: () => START_MS })
  afterAll(() => first.close())
  const hello = first.say({ text: 'hello', from: ADA })
  await first.settled()
  const inGroup = first.say({ text: 'hi all', from: BOB, group: GROUP })
  await first.settled()
  const common = { account: '+15550001111', name: 'Somebody', sentAtMs: START_MS }
  /** Kept by all hosts: the platform gives a device each message once. */
  const secrets = memorySecrets()
  return {
    feature: { ...feature, section: secondSection, build: (host, config) => feature.build(host, config, secondSection.path) },
    config: sectionOf(first),
    allowKey: 'allowed_numbers',
    secrets: [],
    arrivals: chatappWebArrivals,
    listen: {
      async platform(nowMs) {
        const fake = await startWebFake({ nowMs })
        return { fake, config: sectionOf(fake), say: (text) => void fake.say({ text }), refuse: () => fake.unlink() }
      },
      host() {
        for (const id of [hello, inGroup]) first.repeat(id)
        return { fetch, secrets }
      },
      expect: [
        {
          ...common,
          id: `+${ADA}/${hello}`,
          sender: `+${ADA}`,
          to: { to: `${ADA}@s.whatsapp.net`, replyTo: `+${ADA}/${hello}`, more: { quote: 'hello' } },
          addressed: 'direct',
          text: 'hello',
        },
        {
          ...common,
          id: `+${BOB}/${inGroup}`,
          sender: `+${BOB}`,
          to: { to: GROUP, replyTo: `+${BOB}/${inGroup}`, more: { author: `${BOB}@s.whatsapp.net`, quote: 'hi all' } },
          addressed: 'overheard',
          text: 'hi all',
        },
      ],
    },
  }
}
