/** WeCom's own SDK works against the fake, so that the fake speaks the protocol as the SDK understands it. */
import { generateReqId, type TextMessage, WSClient, type WsFrame } from '@wecom/aibot-node-sdk'
import { expect, test } from 'vitest'
import { BOT, startWecomFake } from './testing/fake.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

test('the SDK subscribes, receives, answers, sends, uploads and decrypts', async () => {
  const fake = await startWecomFake()
  const client = new WSClient({ botId: BOT.bot_id, secret: BOT.bot_secret, wsUrl: fake.wsUrl, heartbeatInterval: 50, logger: silent })
  const frames: WsFrame<TextMessage>[] = []
  client.on('message.text', (frame) => void frames.push(frame))
  client.connect()
  await expect.poll(() => fake.bot.isSubscribed).toBe(true)
  fake.say({ text: 'hello' })
  await expect.poll(() => frames.map(({ body }) => body?.text.content)).toEqual(['hello'])
  await client.replyStream(frames[0] as WsFrame, generateReqId('stream'), 'an answer', true)
  const { media_id } = await client.uploadMedia(Buffer.alloc(600_000, 'x'), { type: 'file', filename: 'a.txt' })
  expect(fake.bot.uploads.get(media_id)?.bytes.length).toBe(600_000)
  expect(fake.bot.sent).toEqual([{ via: 'answer', chat: 'user:ada', type: 'stream', text: 'an answer' }])
  const { url, aeskey } = fake.encryptedFile(Buffer.from('meow'))
  expect((await client.downloadFile(url, aeskey)).buffer.toString()).toBe('meow')
  await expect.poll(() => fake.bot.pings).toBeGreaterThan(0)
  client.disconnect()
  await fake.close()
})
