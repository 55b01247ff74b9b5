/** The npm package qq-official-bot, an independent implementation, agrees about signatures, and works against the fake's gateway. */
import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { BotKey } from './proof.ts'
import { BOT } from './testing/fake.ts'
import { keyOf, signatureOf } from './testing/scheme.ts'
import { connect } from './testing/section.ts'

const require = createRequire(import.meta.url)

interface Ed25519 {
  sign(message: string): string
  verify(signature: string, message: string): boolean
}
interface OtherBot {
  start(): Promise<unknown>
  stop(): Promise<unknown>
  on(event: string, take: (message: { readonly message_id?: string; readonly raw_message?: string }) => void): void
  readonly request: {
    readonly interceptors: { readonly request: { use(change: (config: { url?: string; baseURL?: string }) => object): void } }
  }
}
const { Ed25519 } = require('qq-official-bot/lib/ed25519') as { readonly Ed25519: new (secret: string) => Ed25519 }

test('signatures are the same, for secrets of any length', () => {
  for (const secret of [BOT.app_secret, 'a', 'x'.repeat(31), 'y'.repeat(32), 'z'.repeat(70)]) {
    const other = new Ed25519(secret)
    const key = new BotKey(() => secret)
    const signature = key.sign('1725442341', '{"op":0}')
    expect(signature).toBe(other.sign('1725442341{"op":0}'))
    expect(signature).toBe(signatureOf(keyOf(secret), '1725442341', '{"op":0}'))
    expect(key.verifies(signature.toUpperCase(), '1725442341', '{"op":0}')).toBe(true)
    expect(key.verifies(signature, '1725442342', '{"op":0}')).toBe(false)
  }
  expect(() => new BotKey(() => '').sign('1', 'x')).toThrow('empty')
})

test('the public key is that of the documented example', () => {
  // "sign.md" of https://github.com/tencent-connect/bot-docs. The spaces of its signed body did not survive publication.
  const documented = 'd7c362fe78aef81ff23287b493628b5db02a3c4fe30b215e4d19609b5d76673a'
  expect(new BotKey(() => 'naOC0ocQE3shWLAfffVLB1rhYPG7').publicBytes().toString('hex')).toBe(documented)
})

test('the other bot connects to the fake and receives a message', async () => {
  const { fake } = await connect({})
  const { Bot } = require('qq-official-bot') as { readonly Bot: new (config: object) => OtherBot }
  const bot = new Bot({
    appid: BOT.app_id,
    secret: BOT.app_secret,
    sandbox: false,
    removeAt: true,
    logLevel: 'off',
    maxRetry: 1,
    intents: ['GROUP_AND_C2C_EVENT'],
    mode: 'websocket',
  })
  // The package names its hosts in the code; only its HTTP client can send the requests elsewhere.
  const elsewhere = (url = ''): string => url.replace(/^https:\/\/(?:api\.sgroup|bots)\.qq\.com/, fake.url)
  bot.request.interceptors.request.use((config) => ({ ...config, url: elsewhere(config.url), baseURL: elsewhere(config.baseURL) }))
  const received: unknown[] = []
  bot.on('message.private', (message) => received.push(message.raw_message))
  await bot.start()
  await expect.poll(() => fake.gateway.ready).toBe(1)
  fake.say({ text: 'hello' })
  await expect.poll(() => received).toEqual(['hello'])
  await bot.stop()
  await fake.close()
})
