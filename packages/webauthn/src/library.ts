/** The one door to the library that knows keys and signatures; it is large, so it is loaded when it is first needed. */
import { errorText } from '@sluice/sdk'

export const loadWebauthn = () => import('@simplewebauthn/server')
export const loadWebauthnHelpers = () => import('@simplewebauthn/server/helpers')

/** The library quotes what it was sent; this much of it is enough for a log. */
const REASON_CHARS_MAX = 200

export const reasonOf = (error: unknown): string => errorText(error).slice(0, REASON_CHARS_MAX)

export interface RelyingParty {
  readonly rpId: string
  readonly origin: string
}

export const ES256 = -7

/** COSE algorithms that are accepted, the preferred first, with the key type of each and, where there is one, the curve. */
export const ALGORITHMS = [
  { alg: ES256, kty: 2, crv: 1 },
  { alg: -8, kty: 1, crv: 6 },
  { alg: -257, kty: 3, crv: undefined },
] as const
