/** The fake of Slack on loopback, for tests of this package and of the whole product. */
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
