/** Events of this package against the example of NIP-17 and against `nostr-tools`, which others use. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as nip04 from 'nostr-tools/nip04'
import { unwrapEvent } from 'nostr-tools/nip17'
import { decode } from 'nostr-tools/nip19'
import { encrypt, getConversationKey } from 'nostr-tools/nip44'
import { createRumor, createSeal, createWrap } from 'nostr-tools/nip59'
import { finalizeEvent, generateSecretKey, verifyEvent } from 'nostr-tools/pure'
import { describe, expect, test } from 'vitest'
import { readSigned, type SignedEvent, unfrozen } from './event.ts'
import { unwrap, wrap } from './gift-wrap.ts'
import { HIDDEN_SECS } from './hidden-time.ts'
import { Identity } from './identity.ts'
import { decryptLegacy, encryptLegacy } from './nip04.ts'
import { pubkeyOf, secretKeyOfPerson } from './testing/people.ts'

const NOW = 1_767_225_600
const bot = new Identity(secretKeyOfPerson('bot'))
const [ada, mallory] = [secretKeyOfPerson('ada'), secretKeyOfPerson('mallory')]
const example = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/nip17-example.json'), 'utf8')) as {
  sender: string
  receiver: string
  toReceiver: SignedEvent
  toSender: SignedEvent
}
const secretOf = (nsec: string): Uint8Array => {
  const { type, data } = decode(nsec)
  if (type !== 'nsec') throw new Error('the example has a private key')
  return data
}
const opened = (event: SignedEvent, identity = bot) => {
  const verified = readSigned(event)
  return verified && unwrap(identity, verified)
}

describe('the example of NIP-17', () => {
  test('is read by its receiver and by its sender', () => {
    const sender = new Identity(secretOf(example.sender))
    const message = { kind: 14, content: 'Hola, que tal?', pubkey: sender.pubkey }
    expect(opened(example.toReceiver, new Identity(secretOf(example.receiver)))).toMatchObject(message)
    expect(opened(example.toSender, sender)).toMatchObject(message)
  })

  test('is not readable for anyone else', () => {
    expect(opened(example.toReceiver)).toBeUndefined()
  })
})

describe('a gift wrap of the bot', () => {
  const rumor = bot.rumor({ kind: 14, created_at: NOW, tags: [['p', pubkeyOf('ada')]], content: 'hello "you"\n' })

  test('is read by the recipient with nostr-tools', () => {
    const event = wrap(bot, rumor, pubkeyOf('ada'))
    expect(verifyEvent(unfrozen(event))).toBe(true)
    expect(unwrapEvent(unfrozen(event), ada)).toEqual(rumor)
  })

  test('is the same for the same message, and another one for another recipient or message', () => {
    const event = wrap(bot, rumor, pubkeyOf('ada'))
    expect(wrap(new Identity(secretKeyOfPerson('bot')), rumor, pubkeyOf('ada'))).toEqual(event)
    const other = bot.rumor({ ...rumor, content: 'hello' })
    const events = [event, wrap(bot, rumor, pubkeyOf('bob')), wrap(bot, other, pubkeyOf('ada'))]
    expect(new Set(events.map(({ pubkey }) => pubkey)).size).toBe(3)
    expect(new Set(events.map(({ content }) => content.slice(0, 50))).size).toBe(3)
  })

  test('names neither the bot nor the time', () => {
    const events = Array.from({ length: 40 }, (_, index) => wrap(bot, bot.rumor({ ...rumor, content: `${index}` }), pubkeyOf('ada')))
    const hidden = events.map(({ created_at }) => NOW - created_at)
    expect(Math.min(...hidden)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...hidden)).toBeLessThanOrEqual(HIDDEN_SECS)
    expect(Math.max(...hidden) - Math.min(...hidden)).toBeGreaterThan(HIDDEN_SECS / 2)
    expect(JSON.stringify(events)).not.toContain(bot.pubkey)
  })

  test('fits into the events that relays accept, with the longest text and the most escapes', () => {
    const tags = [
      ['p', pubkeyOf('ada')],
      ['e', rumor.id, '', 'reply'],
    ]
    const event = wrap(bot, bot.rumor({ kind: 14, created_at: NOW, tags, content: '"'.repeat(12_000) }), pubkeyOf('ada'))
    expect(JSON.stringify(event).length).toBeLessThanOrEqual(65_536)
  })
})

describe('a forged gift wrap is refused', () => {
  const [here, now] = [bot.pubkey, Math.floor(Date.now() / 1000)]
  const honest = createRumor({ kind: 14, created_at: now, tags: [['p', here]], content: 'pay Mallory' }, ada)
  const wrapped = (seal: object) => createWrap(seal as never, here)
  const sealOf = (inside: object, kind = 13, key = mallory) =>
    finalizeEvent({ kind, created_at: now, tags: [], content: encrypt(JSON.stringify(inside), getConversationKey(key, here)) }, key)

  test('but an honest one is not', () => {
    expect(opened(wrapped(createSeal(honest, ada, here)))).toMatchObject({ id: honest.id, pubkey: pubkeyOf('ada') })
  })

  test.each<[name: string, event: () => object]>([
    ['a message in the name of another', () => wrapped(sealOf(honest))],
    ['a seal of another kind', () => wrapped(sealOf(honest, 14, ada))],
    ['a seal with the signature of another', () => wrapped({ ...createSeal(honest, ada, here), pubkey: pubkeyOf('mallory') })],
    ['a seal without a signature', () => wrapped({ ...createSeal(honest, ada, here), sig: '0'.repeat(128) })],
    ['a message with the id of another', () => wrapped(sealOf({ ...honest, id: '0'.repeat(64) }, 13, ada))],
    ['a message without an id', () => wrapped(sealOf({ ...honest, id: undefined }, 13, ada))],
    ['a message that is no event', () => wrapped(sealOf(['hello'], 13, ada))],
    ['a wrap with a changed content', () => ({ ...wrapped(createSeal(honest, ada, here)), content: 'AAAA' })],
    ['a wrap with a changed tag', () => ({ ...wrapped(createSeal(honest, ada, here)), tags: [] })],
    ['a wrap with a wrong signature', () => ({ ...wrapped(createSeal(honest, ada, here)), sig: '1'.repeat(128) })],
  ])('%s', (_name, event) => {
    expect(opened(event() as SignedEvent)).toBeUndefined()
  })

  test.each([null, 7, 'text', [], {}, { id: 1 }, { ...honest, sig: 3 }, { ...honest, tags: [[1]] }, { ...honest, created_at: -1 }])(
    'JSON that is no event: %j',
    (json) => {
      expect(readSigned(json)).toBeUndefined()
    },
  )
})

describe('legacy messages', () => {
  test('of the bot are read with nostr-tools, and are the same for the same message', () => {
    const message = { text: 'hello ✓', createdAt: NOW, replyTo: undefined }
    const event = encryptLegacy(bot, pubkeyOf('ada'), message)
    expect(verifyEvent(unfrozen(event))).toBe(true)
    expect(nip04.decrypt(ada, bot.pubkey, event.content)).toBe('hello ✓')
    expect(encryptLegacy(bot, pubkeyOf('ada'), message)).toEqual(event)
    expect(encryptLegacy(bot, pubkeyOf('ada'), { ...message, text: 'bye' }).content.split('?iv=')[1]).not.toBe(
      event.content.split('?iv=')[1],
    )
  })

  test('of nostr-tools are read by the bot', () => {
    const content = nip04.encrypt(ada, bot.pubkey, 'hello ✓')
    expect(decryptLegacy(bot, { id: '', pubkey: pubkeyOf('ada'), created_at: NOW, kind: 4, tags: [], content })).toBe('hello ✓')
  })

  test.each(['', 'hello', 'AAAA?iv=AAAA', `${'A'.repeat(24)}?iv=${'A'.repeat(22)}==`, '?iv='])(
    'that cannot be decrypted are ignored: %j',
    (content) => {
      const pubkey = pubkeyOf('ada')
      expect(decryptLegacy(bot, { id: '', pubkey, created_at: NOW, kind: 4, tags: [], content })).toBeUndefined()
      const off = {
        id: '',
        pubkey: 'f'.repeat(64),
        created_at: NOW,
        kind: 4,
        tags: [],
        content: nip04.encrypt(generateSecretKey(), pubkey, 'x'),
      }
      expect(decryptLegacy(bot, off)).toBeUndefined()
    },
  )
})
