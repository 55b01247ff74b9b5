/** DingTalk's own SDK works against the fake, so that the fake speaks the protocol as the SDK understands it. */
import { createRequire } from 'node:module'
import type * as Sdk from 'dingtalk-stream'
import { expect, test, vi } from 'vitest'
import { CLIENT, startDingtalkFake } from './testing/fake.ts'

interface Axios {
  readonly interceptors: { readonly request: { use(change: (config: { url?: string }) => { url?: string }): void } }
}

test('the SDK connects, receives, acknowledges and answers pings', async () => {
  const fake = await startDingtalkFake({ keepMs: 60_000 })
  vi.spyOn(console, 'info').mockImplementation(() => undefined)
  // The SDK names its host in the code; only its HTTP client can send the request elsewhere. Both are loaded as CommonJS, to be the same.
  const require = createRequire(import.meta.url)
  const { DWClient, TOPIC_ROBOT } = require('dingtalk-stream') as typeof Sdk
  const { default: axios } = createRequire(require.resolve('dingtalk-stream'))('axios') as { readonly default: Axios }
  axios.interceptors.request.use((config) => ({ ...config, url: config.url?.replace('https://api.dingtalk.com', fake.url) ?? '' }))
  const client = new DWClient({ clientId: CLIENT.client_id, clientSecret: CLIENT.client_secret })
  const received: Sdk.DWClientDownStream[] = []
  client.registerCallbackListener(TOPIC_ROBOT, (message) => {
    received.push(message)
    client.socketCallBackResponse(message.headers.messageId, {})
  })
  await client.connect()
  await expect.poll(() => fake.stream.open).toBe(1)
  fake.say({ text: 'hello' })
  await expect.poll(() => received.map(({ data }) => (JSON.parse(data) as { text: object }).text)).toEqual([{ content: 'hello' }])
  await expect.poll(() => fake.stream.acknowledged).toHaveLength(1)
  fake.stream.system('ping', { opaque: '1' })
  await expect.poll(() => fake.stream.pongs).toBe(1)
  client.disconnect()
  await fake.close()
})
