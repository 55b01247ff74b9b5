/** chatapp: `X-Hub-Signature-256`, HMAC-SHA256 in hex over the body alone. */
import { hmacSha256, sha256Hex } from '@sluice/sdk'
import { forgeMac } from './forge-mac.ts'
import { openChannel } from './open-channel.ts'
import type { Random } from './random.ts'
import type { Scheme } from './scheme.ts'
import { validBodies } from './valid-bodies.ts'

const SECRET = 'chatapp-app-secret-01'
const HEADER = 'x-hub-signature-256'
const PREFIX = 'sha256='

export async function chatappScheme(random: Random): Promise<Scheme> {
  const { webhook } = await openChannel('channel-chatapp', {
    access_token: 'access-token',
    phone_number_id: '200000000000002',
    verify_token: 'verify-token',
    app_secret: SECRET,
  })
  return {
    name: 'chatapp',
    count: 1_000_000,
    webhook,
    coversBody: true,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({
      headers: { [HEADER]: PREFIX + hmacSha256(SECRET, body).toString('hex') },
      query: '',
      body,
      atMs,
    })),
    forge(request, random) {
      const mac = forgeMac({ secret: SECRET, parts: [request.body] }, random).toString('hex')
      return { ...request, headers: { ...request.headers, [HEADER]: PREFIX + mac } }
    },
    proofs({ headers, body }) {
      const signature = headers[HEADER]?.trim() ?? ''
      return signature.startsWith(PREFIX) ? [`${signature.slice(PREFIX.length).toLowerCase()} ${sha256Hex(body)}`] : []
    },
  }
}
