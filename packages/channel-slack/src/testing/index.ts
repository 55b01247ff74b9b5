/** The fake of Slack on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { chat } from './chat.ts'
import { crashKind } from './crash-kind.ts'
import { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, type SlackFake, startSlackFake } from './fake.ts'

export {
  type Pressed,
  type Said,
  SLACK_APP_TOKEN,
  SLACK_BOT,
  SLACK_BOT_TOKEN,
  type SlackFake,
  type SlackFakeOptions,
  type SlackTokens,
  startSlackFake,
} from './fake.ts'
export type { SlackMessage } from './fake-conversations.ts'

export const testing: ChannelTesting<SlackFake> = {
  async connect() {
    const fake = await startSlackFake()
    return { fake, section: { bot_token: SLACK_BOT_TOKEN, app_token: SLACK_APP_TOKEN, allowed_users: ['*'], api_url: fake.apiUrl } }
  },
  crashKind,
  chat,
}
