/** Requests of WeCom. The signatures and the encrypted texts are made by WeCom's own library, and the first one is written out. */
import { NOW_SECS, REFUSED, type ReferenceBody, type SentRequest, type Turn, type Vector } from '@sluice/testkit/vector'
import { APP, type Elements, envelope, queryOf, sealed, xml } from './seal.ts'

const message = (elements: Elements): string =>
  xml({ ToUserName: APP.corp_id, FromUserName: 'ada', CreateTime: NOW_SECS, ...elements, AgentID: APP.agent_id })
const TEXT = message({ MsgType: 'text', Content: 'hi', MsgId: 1_456_453_720 })
const TURN: Turn = { sender: 'ada', messageId: '1456453720', to: 'user:ada', text: 'hi' }
const TAKEN = [200, ''] as const

const request = (body: string, query: Readonly<Record<string, string>> = queryOf(body, NOW_SECS)): SentRequest => ({
  path: `/wecom?${new URLSearchParams(query)}`,
  headers: [['content-type', 'text/xml']],
  body,
})
const BODY = envelope(sealed(TEXT))
const without = (name: string): SentRequest => {
  const { [name]: _, ...rest } = queryOf(BODY, NOW_SECS)
  return request(BODY, rest)
}
const echo = (text: string, query = queryOf(text, NOW_SECS)): SentRequest => ({
  path: `/wecom?${new URLSearchParams({ ...query, echostr: text })}`,
  method: 'GET',
})
const ECHO = echo(sealed('1616140317555161061'))

export const wecomVectors: readonly Vector[] = [
  {
    id: 'W1',
    what: 'an encrypted text, and its repeat',
    requests: () => [request(BODY), request(BODY)],
    answers: [TAKEN, TAKEN],
    turns: [TURN],
  },
  {
    id: 'W2',
    what: 'the check of the address, which decrypts no message',
    requests: () => [ECHO, echo(sealed('1616140317555161061'), queryOf('other', NOW_SECS)), echo(sealed(TEXT)), echo(sealed(''))],
    answers: [[200, '1616140317555161061'], 403, 403, 403],
  },
  {
    id: 'W3',
    what: 'an event',
    requests: () => [request(envelope(sealed(message({ MsgType: 'event', Event: 'enter_agent' }))))],
    answers: [TAKEN],
  },
  {
    id: 'W4',
    what: 'a missing part of the signature',
    requests: () => ['msg_signature', 'timestamp', 'nonce'].map(without),
    answers: [REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'W5',
    what: 'a request that is 300 s old',
    nowSecs: NOW_SECS + 300,
    requests: () => [request(BODY)],
    answers: [TAKEN],
    turns: [TURN],
  },
  { id: 'W6', what: 'a request that is 301 s old', nowSecs: NOW_SECS + 301, requests: () => [request(BODY)], answers: [REFUSED] },
  {
    id: 'W7',
    what: 'another token, another key, another organisation, another app',
    requests: () => [
      request(BODY, queryOf(BODY, NOW_SECS, { token: 'another-token' })),
      request(envelope(sealed(TEXT, { key: 'a'.repeat(43) }))),
      request(envelope(sealed(TEXT, { receiver: 'wwanother' }))),
      request(BODY.replace(String(APP.agent_id), '1000003')),
    ],
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
  },
  {
    id: 'W8',
    what: 'a body without an encrypted text',
    requests: () => ['', '{}', '<xml></xml>', xml({ Encrypt: '' })].map((body) => request(body)),
    answers: [REFUSED, REFUSED, REFUSED, REFUSED],
  },
  { id: 'W9', what: 'a check of the address that is 301 s old', nowSecs: NOW_SECS + 301, requests: () => [ECHO], answers: [403] },
]

/** The plain text of the first request. */
export const bodies: readonly ReferenceBody[] = [{ body: TEXT, bytes: Buffer.byteLength(TEXT) }]
