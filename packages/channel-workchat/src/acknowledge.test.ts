import { describe, expect, test } from 'vitest'
import { EMOJI, emojiFor, localeOf } from './acknowledge.ts'
import { startWorkchatFake } from './testing/fake.ts'
import { createTestChannel } from './testing/test-channel.ts'

describe('the language of a message', () => {
  test.each([
    ['Is it raining?', undefined, 'en'],
    ['你们好,请问这个怎么样?', undefined, 'zh-CN'],
    ['你們好,請問這個怎麼樣?', undefined, 'zh-TW'],
    ['天气', undefined, 'zh-CN'],
    ['会議は何時ですか', undefined, 'ja'],
    ['カタカナ', undefined, 'ja'],
    ['', undefined, 'en'],
    ['你們好', 'zh_cn', 'zh-CN'],
    ['hello', 'zh_hk', 'zh-TW'],
    ['hello', 'zh-Hant', 'zh-TW'],
    ['hello', 'ja_jp', 'ja'],
    ['你好', 'en_us', 'en'],
    ['你好', 'fr_fr', 'zh-CN'],
  ])('%s, named %s, is %s', (text, named, locale) => {
    expect(localeOf(text, named)).toBe(locale)
  })
})

test('each language has its reactions', () => {
  expect(EMOJI['zh-CN']).toContain('MUSCLE')
  expect(EMOJI['zh-TW']).not.toContain('MUSCLE')
  expect(EMOJI['zh-TW']).toContain('FINGERHEART')
  expect(EMOJI.ja).toEqual(EMOJI.en)
})

test('the reaction varies between messages and stays the same for one', () => {
  const emoji = (id: string) => emojiFor({ id, text: 'hi', to: { to: 'c' } })
  const all = new Set(Array.from({ length: 200 }, (_, index) => emoji(`om_${index}`)))
  expect(all).toEqual(new Set(EMOJI.en))
  expect(emoji('om_7')).toBe(emoji('om_7'))
})

test('a message gets one reaction, also if it is acknowledged twice', async () => {
  const fake = await startWorkchatFake()
  await using _closed = { [Symbol.asyncDispose]: () => fake.close() }
  const { channel } = createTestChannel(fake)
  const id = fake.say({ text: '你们好', isLost: true })
  const message = { id, account: 'a', sender: 'ou_ada', to: { to: 'oc_ada' }, text: '你们好' }
  const { signal } = new AbortController()
  await channel.acknowledge?.(message, signal)
  await channel.acknowledge?.(message, signal)
  expect(fake.reactions).toEqual([{ message: id, emoji: emojiFor(message) }])
  expect(EMOJI['zh-CN']).toContain(fake.reactions[0]?.emoji)
})

test('with `ack_reactions = false` nothing is shown', async () => {
  const { channel } = createTestChannel({ url: 'http://127.0.0.1:9' }, { config: { ack_reactions: false } })
  expect(channel.acknowledge).toBeUndefined()
})
