/**
 * The webhook `/qq`: verification and events. QQ checks the address by a request that asks for a signature (op 13), and the address then
 * gets events (op 0), which are answered with op 12. See "Webhook" at
 * https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/event-emit.html.
 */
import { type Members, members, parsedOrUndefined, parseObject, text } from '@sluice/kit/foreign-json'
import { AppError, isFresh, type Raw, type Sample, type SampleRequest, type Webhook } from '@sluice/sdk/webhook'
import { parseEvent } from './parse.ts'
import type { BotKey } from './proof.ts'

export interface WebhookOptions {
  readonly appId: string
  readonly key: BotKey
}

const SIGNATURE = 'x-signature-ed25519'
const TIMESTAMP = 'x-signature-timestamp'
const WINDOW_SECS = 300
const BODY_BYTES_MAX = 262_144
const EVENT = 0
const ACKNOWLEDGED = 12
const CHECK = 13

export function createWebhook({ appId, key }: WebhookOptions): Webhook {
  return {
    path: '/qq',
    bodyBytesMax: BODY_BYTES_MAX,
    verify(raw) {
      const reason = refusalOf(raw, key)
      // QQ checks the address without a signature. The answer proves that this side has the secret, and nothing else happens.
      if (reason !== undefined && raw.headers[SIGNATURE] === undefined && checkIn(raw)) return { by: 'nothing: QQ checks the address' }
      if (reason !== undefined) throw new AppError('unauthorized', 'Invalid signature', { cause: reason })
      return { by: 'X-Signature-Ed25519' }
    },
    parse(raw) {
      const { op, t, d } = parseObject(raw.body)
      return op === EVENT && raw.headers[SIGNATURE] !== undefined ? parseEvent(text(t), d, { account: appId }) : []
    },
    answer(raw) {
      const check = checkIn(raw)
      if (!check) return Response.json({ op: ACKNOWLEDGED, d: 0 })
      return Response.json({ plain_token: check.token, signature: key.sign(check.timestamp, check.token) })
    },
    sample: (sample) => createSample(sample, key),
  }
}

function refusalOf({ headers, body, receivedAtMs }: Raw, key: BotKey): string | undefined {
  const [signature, timestamp] = [headers[SIGNATURE]?.trim() ?? '', headers[TIMESTAMP]?.trim() ?? '']
  if (signature === '') return `${SIGNATURE} is missing`
  if (!/^\d{1,11}$/.test(timestamp)) return `${TIMESTAMP} is missing or no time`
  if (!isFresh(Number(timestamp), receivedAtMs, WINDOW_SECS)) return `${TIMESTAMP} is not within ${WINDOW_SECS} s`
  return key.verifies(signature, timestamp, body) ? undefined : `${SIGNATURE} does not match the request`
}

/**
 * Returns the parts that QQ asks to be signed. Only short words are signed: the signature of a text that contains an event would let
 * anyone forge that event.
 */
function checkIn({ body }: Raw): { readonly timestamp: string; readonly token: string } | undefined {
  const { op, d } = members(parsedOrUndefined(body))
  const { plain_token, event_ts }: Members = members(d)
  const [token, timestamp] = [text(plain_token), text(event_ts)]
  return op === CHECK && /^[A-Za-z0-9_-]{1,128}$/.test(token) && /^\d{1,13}$/.test(timestamp) ? { timestamp, token } : undefined
}

function createSample({ sender, to = `user:${sender}`, text: content, id, atMs, ignored }: Sample, key: BotKey): SampleRequest {
  const [, kind, openid] = /^(user|group):(.+)$/.exec(to) ?? []
  if (!kind) throw new AppError('invalid_request', `'${to}' is no conversation of qq, such as user:<openid> or group:<group openid>`)
  const common = { id, content, timestamp: new Date(atMs).toISOString() }
  const event =
    kind === 'group'
      ? { t: 'GROUP_AT_MESSAGE_CREATE', d: { ...common, group_openid: openid, author: { member_openid: sender } } }
      : { t: 'C2C_MESSAGE_CREATE', d: { ...common, author: { user_openid: sender } } }
  const body = JSON.stringify({ op: EVENT, s: 1, id: `${event.t}:${id}`, ...event, ...(ignored && { t: 'FRIEND_ADD' }) })
  const timestamp = String(Math.floor(atMs / 1000))
  return {
    headers: { 'content-type': 'application/json', [SIGNATURE]: key.sign(timestamp, body), [TIMESTAMP]: timestamp },
    body,
  }
}
