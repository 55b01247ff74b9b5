/** The proof of a request: HMAC-SHA256 over a random value and the bytes as they came (§5). */
import { AppError, type Raw, type Verified } from '@sluice/sdk'
import { plainUrl } from './base-url.ts'
import type { Server } from './server.ts'
import { isSigned } from './signature.ts'

/** Both spellings of a header's beginning: the documented one, then the one live servers send. */
const SPELLINGS = ['x-roomchat-', 'x-nextcloud-talk-'] as const
/**
 * Servers draw 64 characters, and themselves take no fewer than 32 of others. An event begins with none of these, so that
 * no byte can move between the random value and the body.
 */
const RANDOM = /^[A-Za-z0-9+/=_-]{32,128}$/
const SHOWN_CHARS_MAX = 200

/** Throws `unauthorized`. Without a secret nothing is proved, and whatever comes is let in (§5 rule 4). */
export function verify({ headers, body }: Raw, { secret, backends }: Server): Verified {
  if (!secret) return { by: 'nothing: webhook_secret is not set' }
  const random = find(headers, 'random')
  const signature = find(headers, 'signature')
  const backend = find(headers, 'backend')
  if (!random.value) throw refused(`${random.name} is missing`)
  if (!RANDOM.test(random.value)) throw refused(`${random.name} is not a random value of 32 characters or more`)
  if (!signature.value) throw refused(`${signature.name} is missing`)
  if (!isSigned(secret, random.value, body, signature.value.replace(/^sha256=/, ''))) {
    throw refused(`${signature.name} does not fit the body: is webhook_secret the one the bot was installed with?`)
  }
  if (backend.value !== undefined && !backends.includes(plainUrl(backend.value) ?? '')) {
    const ours = backends.join(' or ')
    throw refused(
      `the signature is right, but ${backend.name} is ${backend.value.slice(0, SHOWN_CHARS_MAX)} and not ${ours}; where it is the same server, set backend_url to it`,
    )
  }
  return { by: signature.name, once: random.value }
}

function find(headers: Raw['headers'], part: string): { readonly name: string; readonly value: string | undefined } {
  const name = SPELLINGS.map((spelling) => spelling + part).find((known) => headers[known] !== undefined) ?? SPELLINGS[0] + part
  return { name, value: headers[name]?.trim() }
}

const refused = (reason: string): AppError => new AppError('unauthorized', 'Invalid signature', { cause: reason })
