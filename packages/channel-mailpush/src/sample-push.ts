/** A push as the provider makes it, for operators who try their set-up: it makes the mailbox be looked at. */
import type { Sample, SampleRequest } from '@sluice/sdk'
import type { MailpushConfig } from './config.ts'

type Proof = Pick<MailpushConfig, 'webhook_secret' | 'service_account'>

/** `ignored`: with data of another kind. Without a secret it proves nothing, as the provider's signature cannot be made here. */
export function samplePush(
  { sender, id, atMs, ignored }: Sample,
  { webhook_secret: secret, service_account: account }: Proof,
): SampleRequest {
  const data = ignored ? { sample: true } : { emailAddress: sender, historyId: atMs }
  const token = secret?.reveal().trim()
  return {
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({
      message: {
        data: Buffer.from(JSON.stringify(data)).toString('base64'),
        messageId: id,
        publishTime: new Date(atMs).toISOString(),
      },
      subscription: 'projects/sample/subscriptions/sample',
    }),
    ...(!token && account !== undefined && { unproved: true }),
  }
}
