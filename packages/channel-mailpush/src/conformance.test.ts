import type { Inbound } from '@sluice/sdk'
import { channelConformance } from '@sluice/testkit/channel'
import { loadFixtures } from '@sluice/testkit/channel-fixtures'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { startMailpushFake } from './testing/fake.ts'

const SECRET = 'mailpush-secret-01'
const TOKEN = 'oauth-token-01'
const NO_MESSAGE = 'a push contains no message: it makes listen fetch the mails'

const MAIL = {
  id: 'm1',
  threadId: 't1',
  labelIds: ['INBOX'],
  snippet: 'what is the time?',
  internalDate: '1767225600000',
  payload: {
    mimeType: 'text/plain',
    headers: [
      { name: 'From', value: 'Ada <Ada@Example.com>' },
      { name: 'Subject', value: 'Time' },
      { name: 'Message-ID', value: '<1@mail.example.com>' },
    ],
    body: { data: Buffer.from('What is the time?').toString('base64url') },
  },
}
const GOLDEN: Inbound = {
  id: 'm1',
  account: 'bot@example.net',
  sender: 'ada@example.com',
  name: 'Ada',
  to: {
    to: 'ada@example.com',
    thread: 't1',
    replyTo: '<1@mail.example.com>',
    more: { subject: 'Time', from: 'bot@example.net', references: '<1@mail.example.com>' },
  },
  addressed: 'direct',
  text: 'Subject: Time\n\nWhat is the time?',
  typed: 'What is the time?',
  sentAtMs: 1_767_225_600_000,
  unverified: true,
}
const ANSWERS: Readonly<Record<string, object>> = {
  'GET profile': { emailAddress: 'Bot@example.net' },
  'POST watch': { historyId: '100', expiration: '1767830400000' },
  'GET history': { history: [{ id: '101', messagesAdded: [{ message: { id: 'm1', labelIds: ['INBOX'] } }] }], historyId: '101' },
  'GET messages/m1': MAIL,
}

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { enabled: true, topic: 'projects/p/topics/t', oauth_token: TOKEN, webhook_secret: SECRET, allowed_senders: ['example.com'] },
  allowKey: 'allowed_senders',
  secrets: [TOKEN, SECRET],
  webhook: {
    fixtures: loadFixtures(new URL('../fixtures/', import.meta.url)),
    own: 'push',
    prove: () => ({ headers: { authorization: `Bearer ${SECRET}` } }),
    secretKey: 'webhook_secret',
    covers: 'nothing',
  },
  send: {
    to: GOLDEN.to,
    answer: () => Response.json({ id: 'm2', threadId: 't1', labelIds: ['SENT'] }),
    id: 'm2',
  },
  listen: {
    host: () => ({
      async fetch(input, init) {
        const { method, url } = new Request(input, init)
        const path = new URL(url).pathname.replace('/gmail/v1/users/me/', '')
        return Response.json(ANSWERS[`${method} ${path}`] ?? {}, { status: ANSWERS[`${method} ${path}`] ? 200 : 404 })
      },
    }),
    expect: [GOLDEN],
    async platform(nowMs) {
      const platform = await startMailpushFake({ nowMs })
      const section = { enabled: true, topic: 'projects/p/topics/t', webhook_secret: SECRET, allowed_senders: ['*'] }
      return {
        fake: platform,
        config: { ...section, oauth_token: 'oauth-token-01', api_url: platform.url, token_url: `${platform.url}/token` },
        say: (text) => void platform.receive({ from: 'ada@example.com', subject: 'hi', text }),
        async poke({ webhook }) {
          const body = new TextEncoder().encode(platform.push())
          await webhook?.parse({ headers: {}, url: new URL('http://localhost/'), body, receivedAtMs: nowMs() })
        },
        refuse: () => platform.expireTokens(),
      }
    },
  },
  except: [
    { rule: 'each fixture parses to its expected messages', why: NO_MESSAGE },
    { rule: 'a sample request is accepted and parses to its message', why: NO_MESSAGE },
    {
      rule: 'a text of the maximum length is sent in full',
      why: 'the rule looks for the text in the request, which contains it in base64',
    },
    {
      rule: 'a reply with styles is sent with all its words',
      why: 'the rule looks for the words in the request, which contains them in base64; `send.test.ts` reads the mail',
    },
  ],
})
