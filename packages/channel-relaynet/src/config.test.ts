import { Secret } from '@sluice/sdk'
import { nprofileEncode, npubEncode, nsecEncode } from 'nostr-tools/nip19'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { relaynetSection } from './config.ts'
import { Identity } from './identity.ts'
import { pubkeyOf, secretKeyOfPerson } from './testing/people.ts'

const HEX = Buffer.from(secretKeyOfPerson('bot')).toString('hex')
const parse = (section: object) => v.safeParse(relaynetSection.schema, { private_key: HEX, ...section })
const refine = (section: object) => relaynetSection.refine(v.parse(relaynetSection.schema, { private_key: HEX, ...section }))

test('reads public keys in hex and bech32, and compares them in hex', async () => {
  const ada = pubkeyOf('ada')
  const written = [ada, ada.toUpperCase(), npubEncode(ada), `nostr:${npubEncode(ada)}`, nprofileEncode({ pubkey: ada, relays: [] }), '*']
  const { value, problems } = await refine({ allowed_pubkeys: written })
  expect(problems).toEqual([])
  expect(value.allowed_pubkeys).toEqual([ada, ada, ada, ada, ada, '*'])
})

test.each(['ada', 'npub1qqqq', `${'0'.repeat(63)}g`, nsecEncode(secretKeyOfPerson('ada')), ''])(
  'refuses the allowlist entry %s, and names its place',
  async (entry) => {
    const { problems } = await refine({ allowed_pubkeys: ['*', entry] })
    expect(problems).toEqual([{ path: ['allowed_pubkeys', 1], message: expect.stringContaining('not a public key') }])
  },
)

test('reads a private key in hex and bech32', async () => {
  for (const key of [HEX, HEX.toUpperCase(), nsecEncode(secretKeyOfPerson('bot')), ` ${HEX}\n`]) {
    expect((await refine({ private_key: key })).problems).toEqual([])
    expect(Identity.from(new Secret(key)).pubkey).toBe(pubkeyOf('bot'))
  }
})

test.each([
  ['zero', '0'.repeat(64)],
  ['the order of the curve', 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141'],
  ['a public key', npubEncode(pubkeyOf('bot'))],
  ['a key with a typing error', nsecEncode(secretKeyOfPerson('bot')).replace(/.$/, 'q')],
])('refuses %s as a private key without quoting it', async (_name, key) => {
  const { problems } = await refine({ private_key: key })
  expect(problems).toEqual([{ path: ['private_key'], message: expect.stringContaining('not a private key') }])
  expect(JSON.stringify(problems)).not.toContain(key.slice(5, 40))
})

test.each([
  ['wss://relay.example', true],
  ['wss://relay.example/inbox?key=1', true],
  ['ws://127.0.0.1:7777', true],
  ['ws://localhost:7777', true],
  ['ws://relay.example', false],
  ['https://relay.example', false],
  ['wss://ada:secret@relay.example', false],
  ['relay.example', false],
])('takes the relay %s: %s', (relay, isTaken) => {
  expect(parse({ relays: [relay] }).success).toBe(isTaken)
})

test('counts two spellings of one relay once', () => {
  const { output } = parse({ relays: ['wss://Relay.example', 'wss://relay.example/', 'wss://relay.example:443'] })
  expect(output).toMatchObject({ relays: ['wss://relay.example'] })
  expect(parse({ relays: [] }).success).toBe(false)
})
