import type { Feature, Inbound } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterAll, describe } from 'vitest'
import { ABILITIES } from './abilities.ts'
import { WORKCHAT_CN, workchatCnSection } from './config.ts'
import feature from './index.ts'
import { workchatArrivals } from './testing/arrivals.ts'
import {
  startWorkchatFake,
  WORKCHAT_APP_ID,
  WORKCHAT_APP_SECRET,
  WORKCHAT_ENCRYPT_KEY,
  WORKCHAT_VERIFICATION_TOKEN,
} from './testing/fake.ts'
import { socketSection } from './testing/section.ts'
import { workchatSignature } from './testing/signed.ts'

const fixtures = loadFixtures(new URL('../fixtures/', import.meta.url))
const TOKEN_FIRST =
  'the first request asks for the token, and nothing of the message was sent when it fails; send.test.ts tests the message'

const send = {
  to: { to: 'oc_1', replyTo: 'om_1' },
  answer: ({ url }: Request) =>
    Response.json(
      url.endsWith('/tenant_access_token/internal')
        ? { code: 0, msg: 'ok', tenant_access_token: 't-1', expire: 7200 }
        : { code: 0, msg: 'success', data: { message_id: 'om_sent' } },
    ),
  id: 'om_sent',
}
const except = [{ rule: 'a message that may have arrived is neither retried nor refused', why: TOKEN_FIRST }]

/** The feature with only its section for China. */
const inChina: Feature = {
  ...feature,
  section: workchatCnSection,
  build: (host, config) => feature.build(host, config, WORKCHAT_CN),
}

describe.each([
  ['workchat', feature],
  ['workchat_cn', inChina],
])('%s by webhooks', (_, subject) => {
  channelConformance({
    names: ABILITIES.names,
    feature: subject,
    config: {
      app_id: WORKCHAT_APP_ID,
      app_secret: WORKCHAT_APP_SECRET,
      receive_mode: 'webhook',
      encrypt_key: WORKCHAT_ENCRYPT_KEY,
      allowed_users: ['ou_1'],
    },
    allowKey: 'allowed_users',
    secrets: [WORKCHAT_APP_SECRET, WORKCHAT_ENCRYPT_KEY],
    arrivals: workchatArrivals,
    webhook: {
      fixtures,
      own: 'own',
      secretKey: 'encrypt_key',
      prove: (body, atMs) => ({ headers: workchatSignature(body, { encryptKey: WORKCHAT_ENCRYPT_KEY, atMs }) }),
    },
    send,
    except,
  })
})

describe('workchat by webhooks with a token', () => {
  channelConformance({
    names: ABILITIES.names,
    feature,
    config: {
      app_id: WORKCHAT_APP_ID,
      app_secret: WORKCHAT_APP_SECRET,
      receive_mode: 'webhook',
      verification_token: WORKCHAT_VERIFICATION_TOKEN,
      allowed_users: ['ou_1'],
    },
    allowKey: 'allowed_users',
    secrets: [WORKCHAT_APP_SECRET, WORKCHAT_VERIFICATION_TOKEN],
    webhook: {
      fixtures,
      own: 'own',
      secretKey: 'verification_token',
      prove: () => ({ body: { 'header.token': WORKCHAT_VERIFICATION_TOKEN } }),
      covers: 'nothing',
    },
    send,
    except: [
      ...except,
      {
        rule: 'without a secret every request is accepted and the missing key is named',
        why: 'it names encrypt_key, the safer of both secrets; the suite by encrypt_key has this rule',
      },
    ],
  })
})

describe('workchat over a long connection', async () => {
  const fake = await startWorkchatFake()
  afterAll(() => fake.close())
  const stored = { oc_ada: { after: '1767225600000', type: 'p2p' }, oc_team: { after: '1767225600000', type: 'group' } }
  const base = { account: WORKCHAT_APP_ID, sender: 'ou_ada', name: 'Name of ou_ada' }
  const mentions = [{ key: '@_user_1', id: 'ou_bot', name: 'Sluice' }]
  const direct = fake.say({ text: 'and here?', isLost: true })
  const group = fake.say({ text: '@_user_1 is 1 < 2?', chat: 'oc_team', mentions, isLost: true })
  const lunch = fake.say({ text: 'lunch?', chat: 'oc_team', isLost: true })
  const golden: readonly Inbound[] = [
    { ...base, id: direct, to: { to: 'oc_ada' }, addressed: 'direct', text: 'and here?', sentAtMs: 1_767_225_600_000 },
    { ...base, id: group, to: { to: 'oc_team', replyTo: group }, addressed: 'mention', text: 'is 1 < 2?', sentAtMs: 1_767_225_600_001 },
    { ...base, id: lunch, to: { to: 'oc_team', replyTo: lunch }, addressed: 'overheard', text: 'lunch?', sentAtMs: 1_767_225_600_002 },
  ]

  channelConformance({
    names: ABILITIES.names,
    feature,
    config: socketSection(fake),
    allowKey: 'allowed_users',
    secrets: [WORKCHAT_APP_SECRET],
    send,
    listen: {
      host() {
        const keyValue = memoryKeyValue()
        void keyValue.set('cursors:workchat', stored)
        return { fetch, keyValue }
      },
      expect: golden,
      canFallSilent: true,
      async platform(nowMs) {
        const platform = await startWorkchatFake({ nowMs, ackMs: 1000, againMs: [50, 50, 50, 50], clientConfig: { PingInterval: 30 } })
        return {
          fake: platform,
          config: socketSection(platform),
          say: (text) => void platform.say({ text }),
          fallSilent: () => platform.socket.cut('mute'),
          refuse: () => platform.revoke(true),
        }
      },
    },
    except,
  })
})
