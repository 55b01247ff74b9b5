/** Signatures of WeCom for the fuzzer: a SHA-1 over sorted texts, made by WeCom's own library. They cover the encrypted text, and not its envelope. */
import { sha256Hex } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { openWebhook } from '@sluice/testkit/webhook-fuzz/open-webhook'
import { urlOf, type WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'
import { getSignature } from '@wecom/crypto'
import feature from '../index.ts'
import { APP, queryOf } from './seal.ts'

const WINDOW_MS = 300_000
/** Each request is decrypted, which costs more than a signature. */
const COUNT = 300_000
const ENCRYPT = /<Encrypt>(?:<!\[CDATA\[([\s\S]*?)\]\]>|([^<]*))<\/Encrypt>/

export function wecomScheme(random: Random): Scheme {
  const { webhook } = openWebhook(feature, APP)
  const parts = ({ query, body }: WebhookRequest) => {
    // A URL has no white space around it, and none of some kinds inside.
    const given = urlOf(query).searchParams
    const get = (name: string): string | undefined => (given.getAll(name).length === 1 ? (given.get(name) ?? undefined) : undefined)
    const found = ENCRYPT.exec(Buffer.from(body).toString())
    return { signature: get('msg_signature'), timestamp: get('timestamp'), nonce: get('nonce'), encrypted: found?.[1] ?? found?.[2] ?? '' }
  }
  const withQuery = (request: WebhookRequest, changes: Readonly<Record<string, string>>): WebhookRequest => ({
    ...request,
    query: new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(request.query)), ...changes }).toString(),
  })
  return {
    count: COUNT,
    webhook,
    coversBody: true,
    isTimed: true,
    valid: validBodies(webhook, random).map(({ body, atMs }) => {
      const query = queryOf(body.toString(), Math.floor(atMs / 1000), { nonce: Buffer.from(random.bytes(8)).toString('hex') })
      return { headers: { 'content-type': 'text/xml' }, query: new URLSearchParams(query).toString(), body, atMs }
    }),
    forge(request, random) {
      const { timestamp = '', nonce = '', encrypted } = parts(request)
      if (random.chance(0.3)) return withQuery(request, { msg_signature: getSignature('another-token', timestamp, nonce, encrypted) })
      if (random.chance(0.3))
        return withQuery(request, { msg_signature: getSignature(APP.callback_token, timestamp, `${nonce}x`, encrypted) })
      if (random.chance(0.3)) return withQuery(request, { msg_signature: getSignature('', timestamp, nonce, encrypted) })
      return withQuery(request, { msg_signature: Buffer.from(random.bytes(20)).toString('hex') })
    },
    proofs(request) {
      const { signature, timestamp = '', nonce, encrypted } = parts(request)
      if (!signature || !nonce || !/^\d{1,11}$/.test(timestamp) || Math.abs(request.atMs - Number(timestamp) * 1000) > WINDOW_MS) return []
      // The signature joins the sorted texts, so a character may move between two of them; each text counts as it is.
      return [JSON.stringify([signature.toLowerCase(), timestamp, nonce, sha256Hex(encrypted)])]
    },
  }
}
