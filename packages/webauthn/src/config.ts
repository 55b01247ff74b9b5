/** The configuration section `[security.webauthn]`: the identity of this gateway to browsers and authenticators. */
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
          v.regex(RP_ID, 'It must be a domain name in lower case, such as example.com'),
          v.check((id) => isIP(id) === 0, 'Browsers support passkeys only for names, not for IP addresses'),
          v.description('The domain that passkeys belong to: the host of rp_origin, or a parent domain of it'),
        ),
        'localhost',
      ),
      rp_origin: v.optional(
        v.pipe(
          v.string(),
          v.check(isOrigin, 'It must be an origin as browsers write it, such as https://example.com, without a path'),
          v.check((origin) => !isOrigin(origin) || isSecure(origin), 'Browsers support passkeys only on https and on http://localhost'),
          v.description('The origin at which browsers reach this gateway; passkeys created or used at another origin are refused'),
        ),
        'http://localhost:42617',
      ),
      rp_name: v.optional(
        v.pipe(
          v.string(),
          v.trim(),
          v.minLength(1),
          v.maxLength(64),
          v.description('The name of this gateway that browsers show to users'),
        ),
        'Sluice',
      ),
    }),
    v.check(
      ({ rp_id, rp_origin }) => isWithin(hostOf(rp_origin), rp_id),
      'rp_id is neither the host of rp_origin nor a parent domain of it',
    ),
  ),
} as const

export type WebauthnConfig = v.InferOutput<typeof webauthnSection.schema>

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.origin === text && /^https?:$/.test(url.protocol)
}

const hostOf = (origin: string): string => URL.parse(origin)?.hostname ?? ''

const isSecure = (origin: string): boolean => origin.startsWith('https:') || isWithin(hostOf(origin), 'localhost')

/** True if `id` is the host or a parent domain of it. A top-level domain other than `localhost` is public and therefore no parent. */
const isWithin = (host: string, id: string): boolean => host === id || (host.endsWith(`.${id}`) && (id.includes('.') || id === 'localhost'))
