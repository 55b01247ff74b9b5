import { hmacSha256, sha256Hex } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { roomchatArrivals } from './testing/arrivals.ts'

const SECRET = 'roomchat-webhook-secret-01'
const TOKEN = 'roomchat-app-token-01'
const RANDOM = 'Zm9vYmFyMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1'

const config = { base_url: 'https://cloud.example', app_token: TOKEN, bot_name: 'Sluice Bot', allowed_users: ['ada'] }
const shared = { feature, allowKey: 'allowed_users', secrets: [SECRET, TOKEN] }
const to = { to: 'ops4room', replyTo: '4711' }

/** Through the bot API, with a secret. */
channelConformance({
  names: ABILITIES.names,
  ...shared,
  config: { ...config, webhook_secret: SECRET },
  arrivals: roomchatArrivals,
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'own',
    secretKey: 'webhook_secret',
    prove: (body) => ({
      headers: { 'X-RoomChat-Random': RANDOM, 'X-RoomChat-Signature': hmacSha256(SECRET, RANDOM, body).toString('hex') },
    }),
  },
  send: {
    to,
    answer: () => Response.json({ ocs: { meta: { status: 'ok', statuscode: 201, message: null }, data: null } }, { status: 201 }),
    id: sha256Hex('client-message-1'),
  },
  except: [
    {
      rule: 'a stale proof is unauthorized, whether from the past or from the future',
      why: 'the protocol has no time: a repeated request is rejected by its random value',
    },
  ],
})

/** Through the chat API, with only the app token. */
channelConformance({
  ...shared,
  config,
  send: { to, answer: () => Response.json({ ocs: { meta: { status: 'ok' }, data: { id: 4727 } } }, { status: 201 }), id: '4727' },
})
