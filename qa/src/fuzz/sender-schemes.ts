/** The schemes of the services that start procedures. */
import { AppError, SENDER_SCHEMES, type Verified, verifyProof, type Webhook } from '@sluice/sdk'
import type { Random } from '@sluice/testkit/random'
import { otherSecret } from '@sluice/testkit/webhook-fuzz/forge-mac'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { signatureScheme } from '@sluice/testkit/webhook-fuzz/signature-scheme'
import { validBodies } from '@sluice/testkit/webhook-fuzz/valid-bodies'

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='

/** A channel that takes the requests of a sender, as the fuzzer expects it. */
const webhookOf = (scheme: (typeof SENDER_SCHEMES)[keyof typeof SENDER_SCHEMES]): Webhook => ({
  path: '/in',
  verify({ headers, url, body, receivedAtMs }): Verified {
    const proof = verifyProof(scheme, [SECRET], { headers, url: url.href, body, receivedAtMs })
    if (!proof.isValid) throw new AppError('unauthorized', proof.reason)
    return { by: 'a proof' }
  },
  parse: () => [],
  sample: ({ id, text, atMs }) => ({
    headers: {},
    body: JSON.stringify({ id, event_id: id, event: { id }, webhookTimestamp: atMs, text }),
  }),
})

function gitlabScheme(random: Random): Scheme {
  const webhook = webhookOf(SENDER_SCHEMES.gitlab)
  const { header } = SENDER_SCHEMES.gitlab
  return {
    count: 1_000_000,
    webhook,
    coversBody: false,
    isTimed: false,
    valid: validBodies(webhook, random).map(({ body, atMs }) => ({ headers: { [header]: SECRET }, query: '', body, atMs })),
    forge: (request, random) => ({ ...request, headers: { [header]: Buffer.from(otherSecret(SECRET, random)).toString('latin1') } }),
    proofs: ({ headers }) => [headers[header]?.trim() ?? ''],
  }
}

/** The scheme of Twilio has its own vectors only: many forms have one signed text. */
export const SENDER_FUZZ: readonly (readonly [name: string, make: (random: Random) => Scheme])[] = [
  ...Object.entries(SENDER_SCHEMES).flatMap(([name, scheme]) => {
    if (scheme.kind !== 'hmac' || name === 'twilio') return []
    return [[`sender-${name}`, (random: Random) => signatureScheme(webhookOf(scheme), { scheme, secret: SECRET }, random)] as const]
  }),
  ['sender-gitlab', gitlabScheme],
]
