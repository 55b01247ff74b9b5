/** Starts the fake and connects the channel to it, as an app and as an AI bot. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { BOT, startWecomFake, type WecomFake, type WecomFakeOptions } from './fake.ts'
import { APP } from './seal.ts'

export async function connect(options: WecomFakeOptions): Promise<Connected<WecomFake>> {
  const fake = await startWecomFake(options)
  return { fake, section: { ...APP, ...BOT, api_url: fake.url, ws_url: fake.wsUrl, allowed_users: ['*'] } }
}
