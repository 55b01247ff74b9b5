/** The fake of a mail provider on loopback, and what the suites of the whole product need to know about the channel. */
import type { ChannelTesting } from '@sluice/testkit/channel-testing'
import { crashKind } from './crash-kind.ts'
import type { EmailFake } from './fake.ts'
import { connect } from './section.ts'

export {
  type AcceptedMail,
  EMAIL_ADDRESS,
  EMAIL_PASSWORD,
  type EmailFake,
  type EmailFakeOptions,
  startEmailFake,
  type Written,
} from './fake.ts'

export const testing: ChannelTesting<EmailFake> = { connect: (nowMs) => connect({ nowMs }), crashKind }
