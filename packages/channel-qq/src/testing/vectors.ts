/** Requests of QQ with their signatures. The check of the address is the one in QQ's documentation. */
import { NOW_SECS, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { BOT } from './fake.ts'
import { keyOf, signatureOf } from './scheme.ts'

/** "event-emit.md" of https://github.com/tencent-connect/bot-docs, with its own secret. */
const CHECK = {
  secret: 'DG5g3B4j9X2KOErG',
  body: '{"d":{"plain_token":"Arq0D5A61EgUu4OxUvOp","event_ts":"1725442341"},"op":13}',
  signature:
    '87befc99c42c651b3aac0278e71ada338433ae26fcb24307bdc5ad38c1adc2d01bcfcadc0842edac85e85205028a1132afe09280305f13aa6909ffc2d652c706',
}
const EVENT = '{"id":"FRIEND_ADD:x0","op":0,"t":"FRIEND_ADD","d":{"openid":"OPENID_ADA"}}'
const DIRECT =
  '{"id":"C2C_MESSAGE_CREATE:x1","op":0,"s":1,"t":"C2C_MESSAGE_CREATE","d":{"id":"ROBOT1.0_m1","content":"hi","timestamp":"2026-01-01T08:00:00+08:00","author":{"user_openid":"OPENID_ADA"}}}'
const GROUP =
  '{"id":"GROUP_AT_MESSAGE_CREATE:x2","op":0,"s":2,"t":"GROUP_AT_MESSAGE_CREATE","d":{"id":"ROBOT1.0_m2","content":" hi","timestamp":"2026-01-01T08:00:00+08:00","group_openid":"GROUP1","author":{"member_openid":"MEMBER_ADA"}}}'
const TURN: Turn = { sender: 'OPENID_ADA', messageId: 'ROBOT1.0_m1', to: 'user:OPENID_ADA', text: 'hi' }
const TAKEN = [200, '{"op":12,"d":0}'] as const

const request = (body: string | Uint8Array, headers: Readonly<Record<string, string>>): SentRequest => ({
  path: '/qq',
  headers: Object.entries({ 'User-Agent': 'QQBot-Callback', 'X-Bot-Appid': BOT.app_id, ...headers }),
  body,
})
export const qqRequest = (body: string | Uint8Array, secs = NOW_SECS): SentRequest =>
  request(body, {
    'X-Signature-Ed25519': signatureOf(keyOf(BOT.app_secret), String(secs), body),
    'X-Signature-Timestamp': String(secs),
  })
export const qqVectors: readonly Vector[] = [
  {
    id: 'Q1',
    what: 'an event that is no message, with a signature in either case',
    requests: () => {
      const { headers = [], ...rest } = qqRequest(EVENT)
      return [
        qqRequest(EVENT),
        { ...rest, headers: headers.map(([name, value]) => [name, name.endsWith('Ed25519') ? value.toUpperCase() : value]) },
      ]
    },
    answers: [TAKEN, TAKEN],
  },
  {
    id: 'Q2',
    what: 'the documented check of the address',
    section: { app_secret: CHECK.secret },
    requests: () => [request(CHECK.body, {})],
    answers: [[200, `{"plain_token":"Arq0D5A61EgUu4OxUvOp","signature":"${CHECK.signature}"}`]],
  },
  {
    id: 'Q3',
    what: 'a direct message, and its repeat',
    requests: () => [qqRequest(DIRECT), qqRequest(DIRECT)],
    answers: [TAKEN, TAKEN],
    turns: [TURN],
  },
  {
    id: 'Q4',
    what: 'a message in a group',
    requests: () => [qqRequest(GROUP)],
    answers: [TAKEN],
    turns: [{ sender: 'MEMBER_ADA', messageId: 'ROBOT1.0_m2', to: 'group:GROUP1', text: 'hi' }],
  },
  {
    id: 'Q5',
    what: 'a request that is 300 s old',
    nowSecs: NOW_SECS + 300,
    requests: () => [qqRequest(DIRECT)],
    answers: [TAKEN],
    turns: [TURN],
  },
  { id: 'Q6', what: 'a request that is 301 s old', nowSecs: NOW_SECS + 301, requests: () => [qqRequest(DIRECT)], answers: [REFUSED] },
  {
    id: 'Q7',
    what: 'another time, another body, and no signature',
    requests: () => {
      const { headers = [] } = qqRequest(DIRECT)
      return [
        {
          path: '/qq',
          headers: headers.map(([name, value]) => (name === 'X-Signature-Timestamp' ? [name, String(NOW_SECS + 1)] : [name, value])),
          body: DIRECT,
        },
        { path: '/qq', headers, body: DIRECT.replace('"hi"', '"ho"') },
        request(DIRECT, {}),
      ]
    },
    answers: [REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'Q8',
    what: 'a check that would sign an event is refused',
    requests: () => [
      request(JSON.stringify({ op: 13, d: { event_ts: String(NOW_SECS), plain_token: DIRECT } }), {}),
      request(JSON.stringify({ op: 13, d: { event_ts: `${NOW_SECS}{`, plain_token: 'abc' } }), {}),
    ],
    answers: [REFUSED, REFUSED],
  },
]

/** The exact bytes of the bodies that are signed here. */
export const bodies: readonly ReferenceBody[] = [
  { body: EVENT, bytes: Buffer.byteLength(EVENT) },
  { body: CHECK.body, bytes: 76 },
]
