import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { describe } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { textrelayArrivals } from './testing/arrivals.ts'
import { TEXTRELAY_TOKEN, textrelaySignatures } from './testing/fake.ts'

const fixtures = loadFixtures(new URL('../fixtures/', import.meta.url))

/** Filters that keep the signature headers of one of the two schemes. */
const legacyOnly = ([name]: [string, unknown]) => name === 'X-Webhook-Timestamp' || name === 'X-Webhook-Signature'
const standardOnly = ([name]: [string, unknown]) => name.startsWith('webhook-')

describe.each([
  ["the platform's own headers", 'textrelay-signing-secret-01', legacyOnly],
  ['Standard Webhooks headers', 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=', standardOnly],
])('%s', (_scheme, secret, headers) => {
  channelConformance({
    names: ABILITIES.names,
    feature,
    config: { api_token: TEXTRELAY_TOKEN, from_phone: '+15550001111', signing_secret: secret, allowed_senders: ['+15550003333'] },
    allowKey: 'allowed_senders',
    secrets: [TEXTRELAY_TOKEN, secret],
    arrivals: textrelayArrivals,
    webhook: {
      fixtures,
      own: 'own',
      secretKey: 'signing_secret',
      prove(body, atMs) {
        const signatures = textrelaySignatures(body, { secret, id: 'evt_0001', atMs })
        return { headers: Object.fromEntries(Object.entries(signatures).filter(headers)) }
      },
    },
    send: {
      to: { to: 'chat-1', more: { handle: '+15550003333' } },
      answer: () => Response.json({ chat_id: 'chat-1', message: { id: 'sent-1', delivery_status: 'queued' } }, { status: 202 }),
      id: 'sent-1',
    },
  })
})
