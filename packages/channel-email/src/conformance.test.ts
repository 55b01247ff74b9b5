import { sha256Hex } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterAll } from 'vitest'
import { ABILITIES } from './abilities.ts'
import { emailSection } from './config.ts'
import feature from './index.ts'
import { Progress } from './progress.ts'
import { settingsOf } from './settings.ts'
import { EMAIL_ADDRESS, EMAIL_PASSWORD } from './testing/fake.ts'
import { connect, sectionOf } from './testing/section.ts'

/** The time at which the clock of each test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const { fake, section } = await connect({ nowMs: () => START_MS })
afterAll(() => fake.close())
fake.write({ text: 'hello', subject: 'Greeting' })
fake.write({ text: 'I am Ada, too', from: 'Ada <Ada@example.com>', isVerified: false })
const thread = (id: string): string => sha256Hex(id).slice(0, 16)

channelConformance({
  names: ABILITIES.names,
  feature,
  config: sectionOf(fake),
  allowKey: 'allowed_senders',
  secrets: [EMAIL_PASSWORD],
  listen: {
    host() {
      const keyValue = memoryKeyValue()
      const progress = new Progress(keyValue, settingsOf(v.parse(emailSection.schema, section)))
      void progress.save({ uidValidity: '1000', uid: 0, atMs: START_MS, setUpAtMs: START_MS })
      return { keyValue }
    },
    expect: [
      {
        id: '<1.mail@example.com>',
        account: EMAIL_ADDRESS,
        sender: 'ada@example.com',
        to: {
          to: 'ada@example.com',
          thread: thread('<1.mail@example.com>'),
          replyTo: '<1.mail@example.com>',
          more: { subject: 'Greeting', references: '<1.mail@example.com>' },
        },
        addressed: 'direct',
        text: 'Subject: Greeting\n\nhello',
        typed: 'hello',
        sentAtMs: START_MS,
      },
      {
        id: 'unverified:<2.mail@example.com>',
        account: EMAIL_ADDRESS,
        sender: 'unverified:ada@example.com',
        name: 'Ada',
        to: {
          to: 'ada@example.com',
          thread: thread('<2.mail@example.com>'),
          replyTo: '<2.mail@example.com>',
          more: { subject: 'hi', references: '<2.mail@example.com>' },
        },
        addressed: 'direct',
        text: 'Subject: hi\n\nI am Ada, too',
        typed: 'I am Ada, too',
        unverified: true,
        sentAtMs: START_MS,
      },
    ],
    canFallSilent: true,
    async platform(nowMs) {
      const platform = await connect({ nowMs })
      return {
        fake: platform.fake,
        config: platform.section,
        say: (text) => void platform.fake.write({ text }),
        fallSilent: () => platform.fake.mute(),
        refuse: () => platform.fake.changePassword('another-password'),
      }
    },
  },
})
