/** Messages of fedchat: each person has a room with the bot, and the homeserver keeps everything since the last position of the bot. */
import type { CrashKind } from '@sluice/testkit/crash-kind'
import { FEDCHAT_PEOPLE } from './fake.ts'
import { connect } from './section.ts'

export async function crashKind(): Promise<CrashKind> {
  const { fake, section } = await connect()
  const roomOf = (sender: string): string => `!with-${sender.slice(1)}`
  for (const person of FEDCHAT_PEOPLE) fake.addRoom({ id: roomOf(person), people: [person] })
  return {
    fake,
    section: { ...section, allowed_rooms: FEDCHAT_PEOPLE.map(roomOf) },
    senders: FEDCHAT_PEOPLE,
    isPulled: true,
    isPrivate: true,
    dropsRepeats: true,
    // The second sync continues from the position of the first, which brings no history.
    isReady: () => fake.syncs > 1,
    write: ({ sender, text }) => fake.say({ text, from: sender, room: roomOf(sender) }),
    remove: ({ id }, { sender }) => ({ id: fake.redact(id, sender, roomOf(sender)) }),
    textIn: ({ json }) => String((json as { readonly body?: unknown } | undefined)?.body ?? ''),
    delivered: () => fake.sent().map(({ content }) => String(content.body ?? '')),
  }
}
