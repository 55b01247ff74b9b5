import { hmacSha256 } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { describe } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { webhookArrivals } from './testing/arrivals.ts'
import { signed, WEBHOOK_AUTHORIZATION, WEBHOOK_PLAIN_SECRET, WEBHOOK_SECRET } from './testing/index.ts'

const plainly = (body: string | Uint8Array) => ({
  'x-webhook-signature': `sha256=${hmacSha256(WEBHOOK_PLAIN_SECRET, body).toString('hex')}`,
})
const NO_TIME = {
  rule: 'a stale proof is unauthorized, whether from the past or from the future',
  why: 'a plain secret signs no time; a repeated message has the same id',
}

describe.each([
  ['Standard Webhooks', WEBHOOK_SECRET, (body: string | Uint8Array, atMs: number) => signed(body, { id: 'm-1', atMs }), []],
  ['a plain secret', WEBHOOK_PLAIN_SECRET, plainly, [NO_TIME]],
] as const)('%s', (_, secret, headers, except) => {
  channelConformance({
    names: ABILITIES.names,
    feature,
    config: { send_url: 'https://receiver.example/replies', auth_header: WEBHOOK_AUTHORIZATION, secret, allowed_senders: ['ada'] },
    allowKey: 'allowed_senders',
    secrets: [WEBHOOK_AUTHORIZATION, secret],
    arrivals: webhookArrivals,
    webhook: {
      fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
      own: 'own',
      secretKey: 'secret',
      prove: (body, atMs) => ({ headers: headers(body, atMs) }),
    },
    send: { to: { to: 'ada', replyTo: 'm-1' }, answer: () => Response.json({ id: 'reply-1' }), id: 'reply-1' },
    except,
  })
})
