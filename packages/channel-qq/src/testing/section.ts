/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { BOT, type QqFake, type QqFakeOptions, startQqFake } from './fake.ts'

export async function connect(options: QqFakeOptions): Promise<Connected<QqFake>> {
  const fake = await startQqFake(options)
  return { fake, section: { ...BOT, api_url: fake.url, token_url: `${fake.url}/app/getAppAccessToken`, allowed_users: ['*'] } }
}
