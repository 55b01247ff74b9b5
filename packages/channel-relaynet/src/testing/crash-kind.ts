/** Private messages of relaynet. The relay keeps them, and a daemon reads the messages of the last days again after each start. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { type Event, pubkeyOf, read } from './people.ts'
import { connect } from './section.ts'

const PEOPLE = ['ada', 'bob', 'cleo', 'dan'] as const

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  const nameOf = (pubkey: string) => PEOPLE.find((name) => pubkeyOf(name) === pubkey) ?? 'ada'
  let said = 0
  return {
    fake,
    section,
    senders: [pubkeyOf('ada'), ...PEOPLE.slice(1).map(pubkeyOf)],
    isPulled: true,
    isPrivate: true,
    dropsRepeats: true,
    isReady: () => fake.subscriptions > 0,
    write: ({ sender, text }) => fake.say({ text, from: nameOf(sender), protocol: said++ % 2 === 0 ? 'nip17' : 'nip04' }),
    textIn: ({ body }) => {
      const event = JSON.parse(body.toString()) as Event
      return PEOPLE.map((name) => read(event, name)?.text).find((text) => text !== undefined) ?? ''
    },
    delivered: () => PEOPLE.flatMap((name) => fake.heardBy(name)).map(({ text }) => text),
  }
}
