/** What the browser says the user agreed to: the JSON in `clientDataJSON` (W3C Web Authentication §5.8.1). */

import { type Members, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { equalTexts } from '@sluice/sdk'

export interface ExpectedClientData {
  readonly type: 'webauthn.create' | 'webauthn.get'
  readonly challenge: string
  readonly origin: string
}

const parse = (clientDataJson: string): Members => members(parsedOrUndefined(Buffer.from(clientDataJson, 'base64url')))

/** The challenge that was signed; empty if there is none. */
export function challengeIn(clientDataJson: string): string {
  const { challenge } = parse(clientDataJson)
  return typeof challenge === 'string' ? challenge : ''
}

/** What is wrong with it, as the end of a sentence; `undefined` if nothing is. */
export function clientDataFault(clientDataJson: string, expected: ExpectedClientData): string | undefined {
  const { type, challenge, origin, crossOrigin = false, topOrigin } = parse(clientDataJson)
  if (type !== expected.type) return `its type is not ${expected.type}`
  if (typeof challenge !== 'string' || !equalTexts(challenge, expected.challenge)) return 'it answers another challenge'
  if (origin !== expected.origin) return `it was made on another origin than ${expected.origin}`
  if (crossOrigin !== false || topOrigin !== undefined) return 'it was made in a frame of another origin'
  return undefined
}
