/** Checks `clientDataJSON`, in which the browser states what its user approved (W3C Web Authentication, `CollectedClientData`). */
import { type Members, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { equalTexts } from '@sluice/sdk'

export interface ExpectedClientData {
  readonly type: 'webauthn.create' | 'webauthn.get'
  readonly challenge: string
  readonly origin: string
}

const parse = (clientDataJson: string): Members => members(parsedOrUndefined(Buffer.from(clientDataJson, 'base64url')))

/** Returns the challenge in the client data, or an empty string if it has none. */
export function challengeIn(clientDataJson: string): string {
  const { challenge } = parse(clientDataJson)
  return typeof challenge === 'string' ? challenge : ''
}

/** Returns the fault of the client data as a clause, or undefined if it is valid. */
export function clientDataFault(clientDataJson: string, expected: ExpectedClientData): string | undefined {
  const { type, challenge, origin, crossOrigin = false, topOrigin } = parse(clientDataJson)
  if (type !== expected.type) return `the type of its client data is not ${expected.type}`
  if (typeof challenge !== 'string' || !equalTexts(challenge, expected.challenge)) return 'it answers another challenge'
  if (origin !== expected.origin) return `its origin is not ${expected.origin}`
  if (crossOrigin !== false || topOrigin !== undefined) return 'it comes from a frame of another origin'
  return undefined
}
