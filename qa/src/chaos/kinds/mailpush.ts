/** Mails of mailpush: the mailbox keeps them, and a push announces them. */
import { readSentMail, startMailpushFake } from '@sluice/channel-mailpush/testing'
import type { Kind } from '../kind.ts'
import { textOf } from '../marks.ts'

const SECRET = 'mailpush-webhook-secret-01'

export async function mailpushKind(): Promise<Kind> {
  const fake = await startMailpushFake()
  return {
    name: 'mailpush',
    config: `[channels_config.mailpush]
enabled = true
topic = "projects/p/topics/t"
oauth_token = "oauth-token-01"
webhook_secret = "${SECRET}"
allowed_senders = ["*"]
api_url = "${fake.url}"
token_url = "${fake.url}/token"
jwks_url = "${fake.url}/oauth2/v3/certs"`,
    senders: ['ada@example.com', 'bob@example.com', 'cleo@example.com', 'dan@example.com'],
    batchMax: 1,
    isPulled: true,
    isReady: () => fake.watches.length > 0,
    write(draft) {
      const { id } = fake.receive({ from: draft.sender, subject: 'Chaos', text: textOf(draft), threadId: `thread of ${draft.sender}` })
      return { ...draft, kind: 'mailpush', id }
    },
    request: () => ({
      path: '/webhook/mailpush',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${SECRET}` },
      body: fake.push(),
    }),
    provider: fake,
    textIn({ path, json }) {
      const { raw } = (json ?? {}) as { readonly raw?: unknown }
      const mail = path.endsWith('/messages/send') && typeof raw === 'string' ? readSentMail(raw, undefined) : ''
      return typeof mail === 'string' ? mail : mail.text
    },
    delivered: () => fake.sent.map(({ text }) => text),
  }
}
