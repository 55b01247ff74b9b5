/**
 * A push service and the browsers that subscribe at it. It refuses what real services refuse, after RFC 8030 (a missing TTL is 400), RFC 8291
 * and RFC 8188 (the content encoding, a body of at most 4096 bytes), RFC 8292 (the audience, an expiry of at most 24 hours, the key of the
 * subscription, 403 for another one) and the answers that autopush documents (404 for an unknown and 410 for an ended subscription). Two
 * libraries that are not ours check signatures and decrypt: jose and http_ece.
 */
import { createECDH, type ECDH, randomBytes, randomUUID } from 'node:crypto'
import type { Host } from '@sluice/sdk'
import ece from 'http_ece'
import { importJWK, jwtVerify } from 'jose'

export interface Received {
  readonly endpoint: string
  readonly ttl: number
  readonly urgency: string | null
  readonly shown: { readonly title: string; readonly body: string; readonly place: string; readonly tag: string }
}

interface Browser {
  readonly keys: ECDH
  readonly auth: Buffer
  readonly applicationKey: string
  isGone: boolean
}

const BODY_BYTES_MAX = 4096
const DAY_SECS = 24 * 3600

export class PushService {
  readonly #origin: string
  readonly #nowMs: () => number
  readonly #browsers = new Map<string, Browser>()
  /** The answers to the next requests, in place of the usual ones. */
  readonly next: (() => Response)[] = []
  /** The messages that browsers got. */
  readonly received: Received[] = []
  /** The reasons of refusals. */
  readonly refused: string[] = []
  requests = 0

  constructor(nowMs: () => number, origin = 'https://push.example') {
    this.#nowMs = nowMs
    this.#origin = origin
  }

  /** A browser subscribes with the key of the page. Returns the answer of `PushSubscription.toJSON`. */
  subscribe(applicationKey: string): { readonly endpoint: string; readonly keys: { readonly p256dh: string; readonly auth: string } } {
    const keys = createECDH('prime256v1')
    keys.generateKeys()
    const auth = randomBytes(16)
    const endpoint = `${this.#origin}/push/${randomUUID()}`
    this.#browsers.set(endpoint, { keys, auth, applicationKey, isGone: false })
    return { endpoint, keys: { p256dh: keys.getPublicKey('base64url'), auth: auth.toString('base64url') } }
  }

  /** The browser ends its subscription. */
  unsubscribe(endpoint: string): void {
    const browser = this.#browsers.get(endpoint)
    if (browser) browser.isGone = true
  }

  readonly fetch: Host['publicFetch'] = async (url, { method, headers: given, body, admit, signal }) => {
    signal.throwIfAborted()
    admit?.(new URL(url))
    this.requests += 1
    const answer = this.next.shift()
    if (answer) return answer()
    const refusal = await this.#refusal(url, { method, headers: new Headers(given), body })
    if (refusal === undefined) return new Response(null, { status: 201, headers: { location: `${url}/1` } })
    this.refused.push(refusal.reason)
    return new Response(refusal.reason, { status: refusal.status })
  }

  async #refusal(
    url: string,
    {
      method,
      headers,
      body,
    }: { readonly method: string | undefined; readonly headers: Headers; readonly body: string | Uint8Array | undefined },
  ): Promise<{ readonly status: number; readonly reason: string } | undefined> {
    const browser = this.#browsers.get(url)
    if (method !== 'POST') return { status: 405, reason: 'a push is a POST' }
    if (!browser) return { status: 404, reason: 'unknown subscription' }
    if (browser.isGone) return { status: 410, reason: 'the subscription has ended' }
    const ttl = headers.get('ttl')
    if (ttl === null || !/^\d+$/.test(ttl)) return { status: 400, reason: 'TTL is missing' }
    if (headers.get('content-encoding') !== 'aes128gcm') return { status: 400, reason: 'wrong content encoding' }
    const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body ?? [])
    if (bytes.length > BODY_BYTES_MAX) return { status: 413, reason: 'the body is too large' }
    const problem = await this.#vapidProblem(headers.get('authorization') ?? '', browser)
    if (problem !== undefined) return { status: problem === 'another key' ? 403 : 401, reason: problem }
    const plain = ece.decrypt(bytes, { version: 'aes128gcm', privateKey: browser.keys, authSecret: browser.auth.toString('base64url') })
    this.received.push({ endpoint: url, ttl: Number(ttl), urgency: headers.get('urgency'), shown: JSON.parse(plain.toString('utf8')) })
    return undefined
  }

  async #vapidProblem(authorization: string, { applicationKey }: Browser): Promise<string | undefined> {
    const [, token = '', key = ''] = /^vapid t=([\w.-]+), ?k=([\w-]+)$/.exec(authorization) ?? []
    if (key !== applicationKey) return 'another key'
    const point = Buffer.from(key, 'base64url')
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
    const verified = await jwtVerify(token, await importJWK({ kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }, 'ES256'), {
      audience: this.#origin,
      currentDate: new Date(this.#nowMs()),
      algorithms: ['ES256'],
    }).catch((error: Error) => error)
    if (verified instanceof Error) return `the token is not valid: ${verified.message}`
    const { exp, sub = '' } = verified.payload
    if (exp === undefined || exp > this.#nowMs() / 1000 + DAY_SECS) return 'the token is valid for more than 24 hours'
    return /^(?:mailto:|https:)/.test(sub) ? undefined : 'there is no contact'
  }
}
