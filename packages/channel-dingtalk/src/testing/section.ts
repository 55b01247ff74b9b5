/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { CLIENT, type DingtalkFake, type DingtalkFakeOptions, startDingtalkFake } from './fake.ts'

export async function connect(options: DingtalkFakeOptions): Promise<Connected<DingtalkFake>> {
  const fake = await startDingtalkFake(options)
  return { fake, section: { ...CLIENT, api_url: fake.url, oapi_url: fake.url, allowed_users: ['*'] } }
}
