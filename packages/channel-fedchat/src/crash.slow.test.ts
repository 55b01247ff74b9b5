/** A daemon that is killed again and again in an encrypted room, with matrix-nio as the person who writes and reads. */
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '@sluice/testkit/random'
import { describe, expect, test } from 'vitest'
import { bundle, type RunningDaemon, scratch, spawnDaemon, startDaemon } from '../../../qa/src/daemons/bundle.ts'
import { FEDCHAT_BOT, FEDCHAT_PEOPLE, FEDCHAT_ROOM, FEDCHAT_TOKEN, type FedchatFake, startFedchatFake } from './testing/fake.ts'
import { missingNio, type NioPerson, startNio } from './testing/nio.ts'
import { soon } from './testing/test-channel.ts'

const [ADA] = FEDCHAT_PEOPLE
const MESSAGES = 40
const KILLS = 10
const BURST = 1000
const PROFILE = 'standard'
const MISSING = missingNio() ?? (existsSync(bundle(PROFILE)) ? undefined : 'run npm run build -- standard first')

const config = (fake: FedchatFake): string => `[provider]
kind = "offline"
[channels_config.fedchat]
homeserver = "${fake.url}"
access_token = "${FEDCHAT_TOKEN}"
room_id = "#ops:example.org"
allowed_users = ["${ADA}"]
[limits]
turns_per_hour = 0
`

/** The messages that the replies of the bot answer, as the client decrypts them; `undefined` for one that it cannot decrypt. */
function answered(ada: NioPerson): (string | undefined)[] {
  return ada.events
    .filter(({ sender }) => sender === FEDCHAT_BOT)
    .map(({ kind, content }) => {
      if (kind !== 'RoomMessageText') return undefined
      const relation = content['m.relates_to'] as { 'm.in_reply_to'?: { event_id?: string } } | undefined
      return relation?.['m.in_reply_to']?.event_id
    })
}

/** Kills the daemon `KILLS` times while `work` runs, some of them while it starts. Resolves to the last daemon. */
async function killRepeatedly(dir: string, first: RunningDaemon): Promise<RunningDaemon> {
  const random = seededRandom('kills')
  let daemon = first
  for (let kill = 0; kill < KILLS; kill++) {
    await sleep(300 + random() * 1500)
    daemon.kill('SIGKILL')
    await daemon.exited
    if (kill % 4 === 3) {
      const starting = spawnDaemon(PROFILE, dir)
      await sleep(random() * 1500)
      starting.kill('SIGKILL')
      await starting.exited
    }
    daemon = await startDaemon(PROFILE, dir)
  }
  return daemon
}

describe.skipIf(MISSING !== undefined)(`a daemon that is killed in an encrypted room${MISSING ? ` (${MISSING})` : ''}`, () => {
  test(`answers each of ${MESSAGES} messages once, and each answer can be decrypted`, async () => {
    const fake = await startFedchatFake({ isEncrypted: true, hasOldMediaOnly: true })
    const ada = await startNio(fake.url, ADA)
    const { dir, dispose } = scratch(config(fake))
    let daemon: RunningDaemon | undefined = await startDaemon(PROFILE, dir)
    try {
      // The first sync brings no history.
      await soon(() => expect(fake.syncs).toBeGreaterThan(1), 30_000)
      const asked: string[] = []
      const writing = (async () => {
        const random = seededRandom('pauses')
        for (let nr = 1; nr <= MESSAGES; nr++) {
          asked.push(await ada.send(FEDCHAT_ROOM, { msgtype: 'm.text', body: `message ${nr}` }))
          await sleep(random() * 600)
        }
      })()
      daemon = await killRepeatedly(dir, daemon)
      await writing
      await soon(() => expect(new Set(answered(ada)).size).toBeGreaterThanOrEqual(MESSAGES), 120_000)
      await sleep(3000)
      expect(answered(ada).toSorted()).toEqual(asked.toSorted())
      expect(daemon.stderr()).not.toMatch(/already exists|panick/)
    } finally {
      daemon?.kill('SIGTERM')
      await daemon?.exited
      await ada.close()
      await fake.close()
      dispose()
    }
  })

  test(`answers each of ${BURST} messages of a burst once`, async () => {
    const fake = await startFedchatFake()
    const { dir, dispose } = scratch(config(fake).replace(JSON.stringify([ADA]), JSON.stringify(FEDCHAT_PEOPLE)))
    let daemon: RunningDaemon | undefined = await startDaemon(PROFILE, dir)
    try {
      await soon(() => expect(fake.syncs).toBeGreaterThan(1), 30_000)
      const asked = Array.from({ length: BURST }, (_, nr) =>
        fake.say({ text: `message ${nr}`, from: FEDCHAT_PEOPLE[nr % FEDCHAT_PEOPLE.length] ?? ADA }),
      )
      daemon = await killRepeatedly(dir, daemon)
      const replies = () =>
        fake.sent().map(({ content }) => (content['m.relates_to'] as { 'm.in_reply_to': { event_id: string } })['m.in_reply_to'].event_id)
      await soon(() => expect(new Set(replies()).size).toBe(BURST), 300_000)
      await sleep(3000)
      expect(replies().toSorted()).toEqual(asked.toSorted())
    } finally {
      daemon?.kill('SIGTERM')
      await daemon?.exited
      await fake.close()
      dispose()
    }
  })
})
