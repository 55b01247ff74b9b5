/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { type RelaynetFake, type RelaynetFakeOptions, startRelaynetFake } from './fake.ts'
import { BOT, secretKeyOfPerson } from './people.ts'

export const BOT_KEY = Buffer.from(secretKeyOfPerson(BOT)).toString('hex')

export const sectionOf = (...fakes: readonly RelaynetFake[]) => ({
  private_key: BOT_KEY,
  relays: fakes.map(({ relayUrl }) => relayUrl),
  allowed_pubkeys: ['*'],
  publish_relay_list: false,
})

export async function connect(options: RelaynetFakeOptions = {}): Promise<Connected<RelaynetFake>> {
  const fake = await startRelaynetFake(options)
  return { fake, section: sectionOf(fake) }
}
