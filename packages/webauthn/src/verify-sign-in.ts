/** Verifies that the authenticator of a passkey signed this challenge (W3C Web Authentication, "Verifying an Authentication Assertion"). */
import type { SignInFinish } from './bodies.ts'
import { clientDataFault } from './client-data.ts'
import { ES256, loadWebauthn, type RelyingParty, reasonOf } from './library.ts'
import type { Passkey } from './passkeys.ts'

/** The state that the authenticator signed. The caller compares the counter with the stored one. */
export interface SignedCounter {
  readonly counter: number
  readonly isBackedUp: boolean
}

/** `fault` is a clause for the log. */
export type SignIn = SignedCounter | { readonly fault: string }

export async function verifySignIn(
  body: SignInFinish,
  challenge: string,
  passkey: Passkey,
  { rpId, origin }: RelyingParty,
): Promise<SignIn> {
  const { id, client_data_json: clientDataJSON, authenticator_data: authenticatorData, signature } = body
  const fault = clientDataFault(clientDataJSON, { type: 'webauthn.get', challenge, origin })
  if (fault) return { fault }
  if (passkey.algorithm === ES256 && !isSingleSequence(signature)) return { fault: 'its signature is not DER' }
  const { verifyAuthenticationResponse } = await loadWebauthn()
  try {
    const { verified, authenticationInfo: info } = await verifyAuthenticationResponse({
      response: {
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: { clientDataJSON, authenticatorData, signature },
      },
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      // With 0 the library does not compare counters, which it would do before it verifies the signature over them.
      credential: { id, publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')), counter: 0 },
    })
    if (!verified) return { fault: 'its signature is wrong' }
    if ((info.credentialDeviceType === 'multiDevice') !== passkey.mayBeBackedUp) return { fault: 'it changed whether it may be backed up' }
    return { counter: info.newCounter, isBackedUp: info.credentialBackedUp }
  } catch (error) {
    return { fault: reasonOf(error) }
  }
}

/** True if the bytes are one DER sequence with nothing after it, which the library does not check. P-256 signatures have short lengths. */
function isSingleSequence(signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64url')
  return bytes[0] === 0x30 && bytes[1] === bytes.length - 2
}
