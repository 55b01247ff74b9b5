/** Access to `@simplewebauthn/server`, which is large and therefore loaded on first use, and the settings of both ceremonies. */
import { errorText } from '@sluice/sdk'

export const loadWebauthn = () => import('@simplewebauthn/server')
export const loadWebauthnHelpers = () => import('@simplewebauthn/server/helpers')

/** The library quotes its input in errors; the log gets no more than this. */
const REASON_CHARS_MAX = 200

export const reasonOf = (error: unknown): string => errorText(error).slice(0, REASON_CHARS_MAX)

/** The relying party of the W3C specification: this gateway, by its domain and its origin. */
export interface RelyingParty {
  readonly rpId: string
  readonly origin: string
}

/** The time that a browser gives its user to answer. */
export const CEREMONY_TIMEOUT_MS = 60_000

export const ES256 = -7

/** The accepted COSE algorithms, the preferred one first, each with its key type and, if it has one, its curve. */
export const ALGORITHMS = [
  { alg: ES256, kty: 2, crv: 1 },
  { alg: -8, kty: 1, crv: 6 },
  { alg: -257, kty: 3, crv: undefined },
] as const
