/** `[security.webauthn]` (§2.6): who this gateway is to browsers and authenticators. */
import { isIP } from 'node:net'
import * as v from 'valibot'

const RP_ID = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/

export const webauthnSection = {
  path: 'security.webauthn',
  schema: v.pipe(
    v.object({
      enabled: v.optional(v.pipe(v.boolean(), v.description('Serves the passkey endpoints and the page /passkey')), false),
      rp_id: v.optional(
        v.pipe(
          v.string(),
          v.regex(RP_ID, 'It is a domain name in lower case, such as example.com'),
          v.check((id) => isIP(id) === 0, 'Browsers have no passkeys for addresses, only for names'),
          v.description('The domain passkeys belong to: the host of rp_origin, or a domain that host is in'),
        ),
        'localhost',
      ),
      rp_origin: v.optional(
        v.pipe(
          v.string(),
          v.check(isOrigin, 'It is an origin as browsers write it, such as https://example.com, without a path'),
          v.check((origin) => !isOrigin(origin) || isSecure(origin), 'Browsers have passkeys on https only, and on http://localhost'),
          v.description('Where browsers reach this gateway; passkeys made or used elsewhere are refused'),
        ),
        'http://localhost:42617',
      ),
      rp_name: v.optional(
        v.pipe(v.string(), v.trim(), v.minLength(1), v.maxLength(64), v.description('What people are told they sign in to')),
        'Sluice',
      ),
    }),
    v.check(({ rp_id, rp_origin }) => isWithin(hostOf(rp_origin), rp_id), 'rp_id is neither the host of rp_origin nor a domain it is in'),
  ),
} as const

export type WebauthnConfig = v.InferOutput<typeof webauthnSection.schema>

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.origin === text && /^https?:$/.test(url.protocol)
}

const hostOf = (origin: string): string => URL.parse(origin)?.hostname ?? ''

const isSecure = (origin: string): boolean => origin.startsWith('https:') || isWithin(hostOf(origin), 'localhost')

/** A top-level domain is nobody's own, but for `localhost`. */
const isWithin = (host: string, id: string): boolean => host === id || (host.endsWith(`.${id}`) && (id.includes('.') || id === 'localhost'))
