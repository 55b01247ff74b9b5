import type { Raw } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WORKCHAT_CN, workchatSection } from './config.ts'
import feature from './index.ts'
import { startWorkchatFake, WORKCHAT_BOT, WORKCHAT_ENCRYPT_KEY, type WorkchatFake } from './testing/fake.ts'
import { webhookSection } from './testing/section.ts'
import { workchatEncrypted, workchatSignature } from './testing/signed.ts'
import { createWebhook } from './webhook.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const MENTION = [{ key: '@_user_1', id: WORKCHAT_BOT, name: 'Sluice' }]
let fake: WorkchatFake
beforeEach(async () => {
  fake = await startWorkchatFake()
})
afterEach(() => fake.close())

const raw = (body: string, headers: Record<string, string> = {}): Raw => ({
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  url: new URL('http://localhost/workchat'),
  body: Buffer.from(body),
  receivedAtMs: NOW_MS,
})

function channelWith(config: object = {}, path?: string) {
  const section = v.parse(workchatSection.schema, { ...webhookSection(fake), ...config })
  const [channel] = feature.build(testHost({ fetch }), section, path).channels ?? []
  if (!channel?.webhook) throw new Error('The feature built no webhook')
  return { channel, webhook: channel.webhook }
}
const encrypted = (event: object): Raw => raw(workchatEncrypted(JSON.stringify(event), WORKCHAT_ENCRYPT_KEY))

test('each section has a path of its own, and does not listen', () => {
  expect([channelWith().webhook.path, channelWith({}, WORKCHAT_CN).webhook.path]).toEqual(['/workchat', '/workchat_cn'])
  expect(channelWith().channel.listen).toBeUndefined()
})

test('recalled messages of threads are looked for in all threads, because Lark reports a recall without the thread', () => {
  for (const path of [undefined, WORKCHAT_CN]) expect(channelWith({}, path).channel.changesLackThread).toBe(true)
})

test('the ids of a person are known once the request is parsed', async () => {
  const { channel, webhook } = channelWith()
  expect(channel.matches?.('on_ada', 'ou_ada')).toBe(false)
  await webhook.parse(encrypted(fake.eventOf(fake.say({ text: 'x', isLost: true }))))
  expect(channel.matches?.('on_ada', 'ou_ada')).toBe(true)
})

test('a message has the words of the one that it quotes', async () => {
  const { webhook } = channelWith()
  const first = fake.say({ user: 'ou_bob', text: 'ticket 4711 burns', isLost: true })
  const [message] = await webhook.parse(encrypted(fake.eventOf(fake.say({ text: 'why?', replyTo: first, isLost: true }))))
  expect(message?.quoted).toEqual({ id: first, author: { id: 'ou_bob' }, text: 'ticket 4711 burns' })
})

test('messages that a person passes on together, or quotes, bring their words and writers', async () => {
  const { webhook } = channelWith()
  const merged = { type: 'merge_forward', content: 'Merged and Forwarded Message' }
  const all = fake.say({ ...merged, isLost: true })
  fake.say({ user: 'ou_bob', text: 'ticket 4711 burns', passedOnIn: all })
  const inner = fake.say({ ...merged, passedOnIn: all })
  fake.say({ user: 'ou_eve', type: 'image', content: { image_key: 'img_1' }, passedOnIn: inner })
  const words = 'ou_bob: ticket 4711 burns\nou_eve: [image img_1]'
  expect(await webhook.parse(encrypted(fake.eventOf(all)))).toMatchObject([{ text: '', forwarded: { text: words } }])
  const asked = encrypted(fake.eventOf(fake.say({ text: 'what is it?', replyTo: all, isLost: true })))
  expect(await webhook.parse(asked)).toMatchObject([{ text: 'what is it?', quoted: { text: `Forwarded: ${words}` } }])
})

test('messages that a person passes on together and that cannot be read yet arrive as a file, which is read when the turn begins', async () => {
  const { channel, webhook } = channelWith()
  const all = fake.say({ type: 'merge_forward', content: 'Merged and Forwarded Message', isLost: true })
  const event = encrypted(fake.eventOf(all))
  fake.say({ user: 'ou_bob', text: 'ticket 4711 burns', passedOnIn: all })
  fake.fail({ fault: 'reset' })
  const [message] = await webhook.parse(event)
  expect(message).toMatchObject({ text: '', forwarded: { text: '[merge_forward]', attachments: [{ name: 'forwarded-messages.txt' }] } })
  const [file] = message?.forwarded?.attachments ?? []
  if (!file) throw new Error('The message has no file')
  const fetched = (bytesMax: number) => channel.fetchMedia?.(file, { bytesMax, signal: new AbortController().signal })
  expect(Buffer.from((await fetched(1000))?.bytes ?? []).toString()).toBe('ou_bob: ticket 4711 burns')
  await expect(fetched(10)).rejects.toMatchObject({ code: 'too_large' })
})

test('messages that a person passes on together and that have no words are no empty file', async () => {
  const { channel } = channelWith()
  const all = fake.say({ type: 'merge_forward', content: 'Merged and Forwarded Message', isLost: true })
  const file = { kind: 'file', name: 'forwarded-messages.txt', source: { id: `${all}/merge_forward` } } as const
  const fetched = await channel.fetchMedia?.(file, { bytesMax: 1000, signal: new AbortController().signal })
  expect(Buffer.from(fetched?.bytes ?? []).toString()).toBe('[merge_forward]')
})

describe('a mention of the bot', () => {
  const mentioned = (): Raw => encrypted(fake.eventOf(fake.say({ chat: 'oc_team', text: '@_user_1 hi', mentions: MENTION, isLost: true })))

  test('is removed, and the id of the bot is asked once', async () => {
    const { webhook } = channelWith()
    for (let round = 0; round < 3; round++) expect(await webhook.parse(mentioned())).toMatchObject([{ text: 'hi' }])
    expect(fake.requests.filter(({ path }) => path.endsWith('/bot/v3/info'))).toHaveLength(1)
  })

  test('stays while the platform does not tell the id of the bot, and is removed later', async () => {
    const { webhook } = channelWith()
    fake.fail({ fault: 'reset' })
    expect(await webhook.parse(mentioned())).toMatchObject([{ text: '@Sluice hi' }])
    expect(await webhook.parse(mentioned())).toMatchObject([{ text: 'hi' }])
  })

  test('is needed with `mention_only`, so that the request is refused until the id is known', async () => {
    const { webhook } = channelWith({ mention_only: true })
    fake.fail({ fault: 'reset' })
    await expect(webhook.parse(mentioned())).rejects.toMatchObject({ code: 'unavailable' })
    fake.fail({ fault: 'status', status: 200, body: { code: 10014, msg: 'app secret invalid' } })
    await expect(webhook.parse(mentioned())).rejects.toMatchObject({ code: 'unavailable' })
    expect(await webhook.parse(mentioned())).toMatchObject([{ text: 'hi' }])
    const other = encrypted(fake.eventOf(fake.say({ chat: 'oc_team', text: 'not for the bot', isLost: true })))
    expect(await webhook.parse(other)).toMatchObject([{ text: 'not for the bot', overheardOnly: true }])
    const alone = createWebhook({ path: '/workchat', appId: 'a', encryptKey: WORKCHAT_ENCRYPT_KEY, mentionOnly: true })
    expect(await alone.parse(other)).toEqual([])
  })
})

describe('a request', () => {
  test('that is encrypted without a configured key names the key', async () => {
    const webhook = createWebhook({ path: '/workchat', appId: 'a', verificationToken: 't' })
    await expect(webhook.parse(encrypted({}))).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('encrypt_key'),
    })
    expect(() => webhook.verify(encrypted({}))).toThrow(expect.objectContaining({ cause: 'the request contains no token' }))
  })

  test('that is encrypted with another key, cut off, or no base64 is invalid', async () => {
    const { webhook } = channelWith()
    const whole = workchatEncrypted('{}', WORKCHAT_ENCRYPT_KEY)
    for (const body of [workchatEncrypted('{}', 'another'), whole.replace(/.{4}"}$/, '"}'), '{"encrypt":""}', '{"encrypt":"ä"}']) {
      await expect(webhook.parse(raw(body)), body).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('may have its time in milliseconds', () => {
    const { webhook } = channelWith()
    const body = workchatEncrypted('{}', WORKCHAT_ENCRYPT_KEY)
    const at = (atMs: number) => {
      // The time is signed as it is written.
      const headers = workchatSignature(body, { encryptKey: WORKCHAT_ENCRYPT_KEY, atMs: atMs * 1000 })
      return webhook.verify(raw(body, headers))
    }
    expect(at(NOW_MS)).toEqual({ by: 'x-lark-signature' })
    expect(() => at(NOW_MS - 302_000)).toThrow('Invalid signature')
  })

  test('with an encrypted event but without a signature is no check of the URL', () => {
    const { webhook } = channelWith()
    const event = { ...fake.eventOf(fake.say({ text: 'x', isLost: true })), token: 't' }
    expect(() => webhook.verify(encrypted(event))).toThrow('Invalid signature')
    expect(() => webhook.verify(raw('{"type":"url_verification","challenge":"c","token":"t"}'))).toThrow('Invalid signature')
    expect(webhook.verify(encrypted({ type: 'url_verification', challenge: 'c' }))).toEqual({ by: 'the encrypted challenge' })
  })
})
