/** Channels whose platform signs nothing: every request carries a secret, in the URL or as a bearer token. */
import { otherSecret } from './forge-mac.ts'
import { openChannel } from './open-channel.ts'
import type { Random } from './random.ts'
import { urlOf, type WebhookRequest } from './request.ts'
import type { Scheme } from './scheme.ts'
import { validBodies } from './valid-bodies.ts'

const MAILPUSH_SECRET = 'mailpush-secret-01'
const BIZCHAT_SECRET = 'bizchat-webhook-secret-01'

/** The secrets in a request: its bearer token, and its URL token unless it is repeated. */
function presented({ headers, query }: WebhookRequest): string[] {
  const [, bearer] = /^bearer +(.+)$/i.exec(headers.authorization?.trim() ?? '') ?? []
  const tokens = query === '' ? [] : urlOf(query).searchParams.getAll('token')
  return [...(bearer === undefined ? [] : [bearer]), ...(tokens.length === 1 ? tokens : [])]
}

const asBearer = (secret: string) => ({ headers: { authorization: `Bearer ${secret}` }, query: '' })
const asToken = (secret: string) => ({ headers: {}, query: `token=${encodeURIComponent(secret)}` })

type Present = (secret: string) => Pick<WebhookRequest, 'headers' | 'query'>

async function sharedSecretScheme(
  name: string,
  { folder, config, secret, present }: { folder: string; config: object; secret: string; present: Present },
  random: Random,
): Promise<Scheme> {
  const { webhook } = await openChannel(folder, config)
  return {
    name,
    count: 1_000_000,
    webhook,
    coversBody: false,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ ...present(secret), body, atMs })),
    forge(request, random) {
      const other = Buffer.from(otherSecret(secret, random)).toString('latin1')
      return { ...request, ...random.pick([asBearer, asToken])(other) }
    },
    proofs: presented,
  }
}

const mailpush = {
  folder: 'channel-mailpush',
  config: { enabled: true, topic: 'projects/p/topics/t', oauth_token: 'oauth-token', webhook_secret: MAILPUSH_SECRET },
  secret: MAILPUSH_SECRET,
}
const bizchat = {
  folder: 'channel-bizchat',
  config: { api_token: 'api-token', api_url: 'https://host.example', webhook_secret: BIZCHAT_SECRET },
  secret: BIZCHAT_SECRET,
}

export const mailpushBearerScheme = (random: Random) => sharedSecretScheme('mailpush-bearer', { ...mailpush, present: asBearer }, random)
export const mailpushTokenScheme = (random: Random) => sharedSecretScheme('mailpush-token', { ...mailpush, present: asToken }, random)
export const bizchatBearerScheme = (random: Random) => sharedSecretScheme('bizchat-bearer', { ...bizchat, present: asBearer }, random)
export const bizchatTokenScheme = (random: Random) => sharedSecretScheme('bizchat-token', { ...bizchat, present: asToken }, random)
