/** Verifies requests to triggers that have their own authentication, such as the signature of GitHub. */
import { withoutTrailing } from '@sluice/kit/without-trailing'
import { AppError, type Lockout, type SignedRequest, sha256Hex, verifyProof, type WebhookAuth, type WebhookScheme } from '@sluice/sdk'
import { checkLockout } from '../auth/lockout.ts'
import { RefusalLog } from '../auth/refusal-log.ts'
import { type HttpContext, headersOf, type Sender, type Step } from '../request/context.ts'
import { SECURITY_HEADERS } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { limitCaller } from './webhook-admission.ts'

const HEADER_CHARS_MAX = 1024

/**
 * Sets `sender`; needs `trigger` and `rawBody`, because signatures cover the raw bytes. Refuses a request that satisfies no
 * authentication of the triggers on its path with `unauthorized`, or `rate_limited` while its address sends too many such requests
 * or is locked out: wrong proofs count like wrong tokens. A valid request is never limited, because most senders do not send an event
 * again. Throws `unavailable` while no secret is set. Passes other requests on.
 */
export function verifySender(parts: AppParts): Step {
  const { runtime, snapshot, auth } = parts
  const refusals = new RefusalLog(runtime)
  const limitRefused = limitCaller(parts)
  const { public_url } = snapshot.gateway
  return async (c, next) => {
    const { webhooks, isSigned } = c.get('trigger')
    if (!isSigned) return next()
    const request = signedRequest(c, public_url, runtime.clock.nowMs())
    const proofs = webhooks.flatMap(({ auth, secrets }) => {
      if (!auth) return []
      const texts = secrets.map((secret) => secret.reveal().trim())
      return [{ auth, hasSecret: secrets.length > 0, proof: verifyProof(auth.scheme, texts, request, auth.windowSecs) }]
    })
    const sender = senderOf(c.req.path, proofs)
    if (sender) {
      c.set('sender', sender)
      return next()
    }
    let isGuess = false
    for (const { auth, proof } of proofs) {
      if (proof.isValid) continue
      isGuess ||= proof.isGuess
      refusals.note({ path: c.req.path, auth: auth.name, reason: proof.reason })
    }
    if (!proofs.some(({ hasSecret }) => hasSecret)) throw new AppError('unavailable', 'The secret of this webhook is not set')
    return limitRefused(c, () => refuse(c, auth.lockout, isGuess))
  }
}

/** Throws `rate_limited` while the address is locked out, else `unauthorized`. A wrong proof counts for the lockout. */
async function refuse(c: HttpContext, lockout: Lockout, isGuess: boolean): Promise<never> {
  const { address, spared, operator } = c.get('peer')
  if (!spared && operator === undefined) {
    await checkLockout(lockout, address)
    if (isGuess) await lockout.fail(address)
  }
  throw new AppError('unauthorized', 'Unauthorized: the request does not prove that it comes from the configured sender')
}

type Proofs = readonly { readonly auth: WebhookAuth; readonly proof: ReturnType<typeof verifyProof> }[]

function senderOf(path: string, proofs: Proofs): Sender | undefined {
  const valid = proofs.flatMap(({ auth, proof }) => (proof.isValid ? [{ auth, id: proof.deliveryId }] : []))
  const [first] = valid
  if (!first) return undefined
  const named = valid.find(({ id }) => id !== undefined)
  return {
    verified: valid.map(({ auth }) => auth),
    by: `webhook:${first.auth.name}`,
    ...(named?.id !== undefined && { key: `webhook ${path} ${named.auth.name} ${deliveryDigest(named.auth, named.id)}` }),
  }
}

/** Different senders on one path may give the same id to their deliveries. */
const deliveryDigest = ({ scheme, secrets }: WebhookAuth, id: string): string => sha256Hex(JSON.stringify([scheme, secrets[0], id]))

/** Some senders sign the address that they call, which a proxy changes: `[gateway] public_url` is the part before the path. */
function signedRequest(c: HttpContext, publicUrl: string | undefined, receivedAtMs: number): SignedRequest {
  const headers = c.env?.incoming?.headers ?? Object.fromEntries(c.req.raw.headers)
  const { pathname, search } = new URL(c.req.url)
  const url = publicUrl === undefined ? c.req.url : `${withoutTrailing(publicUrl, '/')}${pathname}${search}`
  return { headers, url, body: c.get('rawBody'), receivedAtMs }
}

const headerNames = (scheme: Extract<WebhookScheme, { readonly header: string }>): readonly string[] =>
  'otherHeader' in scheme && scheme.otherHeader !== undefined ? [scheme.header, scheme.otherHeader] : [scheme.header]

/** Returns the headers that the event keeps: the headers of the sender's scheme, and the ones that conditions and steps read. */
export function eventHeaders(c: HttpContext): Readonly<Record<string, string>> {
  const { webhooks } = c.get('trigger')
  const verified = c.get('sender')?.verified ?? []
  const credentials = new Set(webhooks.flatMap(({ auth }) => (auth && 'header' in auth.scheme ? headerNames(auth.scheme) : [])))
  const schemes = verified.flatMap(({ scheme: { idHeaders = [], eventHeaders: own = [] } }) => [...idHeaders, ...own])
  const names = new Set([...schemes, ...webhooks.flatMap(({ headers }) => headers)].filter((name) => !credentials.has(name)))
  const headers = headersOf(c)
  const values = [...names].map((name) => [name, headers.get(name)?.slice(0, HEADER_CHARS_MAX)] as const)
  return Object.fromEntries(values.filter((entry): entry is readonly [string, string] => entry[1] !== undefined))
}

/** Answers a request by which a verified sender checks the endpoint; undefined for an event. */
export function answerHandshake({ verified }: Sender, payload: string | null): Response | undefined {
  for (const { scheme } of verified) {
    if (scheme.kind !== 'hmac' || !scheme.handshake || payload === null) continue
    const { type, [scheme.handshake.answer]: answer } = membersOf(payload)
    if (type === scheme.handshake.type && typeof answer === 'string') {
      return new Response(answer, { headers: { ...SECURITY_HEADERS, 'content-type': 'text/plain; charset=utf-8' } })
    }
  }
  return undefined
}

function membersOf(payload: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(payload) ?? {}) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}
