/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { MATTERMOST_TOKEN, type MattermostFake, type MattermostFakeOptions, startMattermostFake } from './fake.ts'

export const sectionOf = ({ url }: Pick<MattermostFake, 'url'>) => ({ url, bot_token: MATTERMOST_TOKEN, allowed_users: ['*'] })

export async function connect(options: MattermostFakeOptions = {}): Promise<Connected<MattermostFake>> {
  const fake = await startMattermostFake(options)
  return { fake, section: sectionOf(fake) }
}
