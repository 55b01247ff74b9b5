/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { IRC_PASSWORD, type IrcFake, type IrcFakeOptions, startIrcFake } from './fake.ts'

export const sectionOf = ({ port }: IrcFake) => ({
  server: '127.0.0.1',
  port,
  tls: false,
  nickname: 'sluice',
  channels: ['#ops'],
  allowed_users: ['*'],
  sasl_password: IRC_PASSWORD,
  send_interval_ms: 0,
})

export async function connect(options: IrcFakeOptions = {}): Promise<Connected<IrcFake>> {
  const fake = await startIrcFake(options)
  return { fake, section: sectionOf(fake) }
}
