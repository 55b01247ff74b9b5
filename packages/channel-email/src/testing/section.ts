/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { AUTHSERV_ID, EMAIL_ADDRESS, EMAIL_PASSWORD, type EmailFake, type EmailFakeOptions, startEmailFake } from './fake.ts'

export const sectionOf = ({ imapPort, smtpPort }: Pick<EmailFake, 'imapPort' | 'smtpPort'>) => ({
  imap_host: '127.0.0.1',
  imap_port: imapPort,
  imap_security: 'none',
  smtp_host: '127.0.0.1',
  smtp_port: smtpPort,
  smtp_security: 'none',
  username: EMAIL_ADDRESS,
  password: EMAIL_PASSWORD,
  authserv_id: AUTHSERV_ID,
  allowed_senders: ['*'],
  max_mails_per_hour: 0,
})

export async function connect(options: EmailFakeOptions = {}): Promise<Connected<EmailFake>> {
  const fake = await startEmailFake(options)
  return { fake, section: sectionOf(fake) }
}
