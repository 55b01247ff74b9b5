import { expect, test } from 'vitest'
import { parseBot } from './parse-bot.ts'

const body = { msgid: 'm1', chatid: 'wrk1', chattype: 'group', from: { userid: 'ada' }, msgtype: 'text', text: { content: '@Sluice ' } }
const read = (more: object) => parseBot({ ...body, ...more }, { botId: 'aib', request: 'r', nowMs: 1 })

test('a mention alone counts when it quotes a message, and only then', () => {
  const quote = { msgtype: 'image', image: { url: 'https://example.com/x', aeskey: 'a2V5' } }
  expect(read({ quote })).toMatchObject([{ text: '', addressed: 'mention', quoted: { attachments: [{ kind: 'image' }] } }])
  expect(read({})).toEqual([])
})
