/** Whether an authenticator has signed for this passkey, here and now (W3C Web Authentication §7.2). */
import type { SignInFinish } from './bodies.ts'
import { clientDataFault } from './client-data.ts'
import { ES256, loadWebauthn, type RelyingParty, reasonOf } from './library.ts'
import type { Passkey } from './passkeys.ts'

/** `counter` is proved to be the authenticator's, and compared with nothing yet. `fault` is for the log. */
export type SignIn = { readonly counter: number; readonly isBackedUp: boolean } | { readonly fault: string }

export async function verifySignIn(
  body: SignInFinish,
  challenge: string,
  passkey: Passkey,
  { rpId, origin }: RelyingParty,
): Promise<SignIn> {
  const { id, client_data_json: clientDataJSON, authenticator_data: authenticatorData, signature } = body
  const fault = clientDataFault(clientDataJSON, { type: 'webauthn.get', challenge, origin })
  if (fault) return { fault }
  if (passkey.algorithm === ES256 && !isWholeDer(signature)) return { fault: 'its signature is not DER' }
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
      // The library compares counters before it knows who counted; here a counter means something only once it is signed.
      credential: { id, publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')), counter: 0 },
    })
    if (!verified) return { fault: 'its signature is wrong' }
    if ((info.credentialDeviceType === 'multiDevice') !== passkey.mayBeBackedUp) return { fault: 'it changed whether it may be backed up' }
    return { counter: info.newCounter, isBackedUp: info.credentialBackedUp }
  } catch (error) {
    return { fault: reasonOf(error) }
  }
}

/** True if nothing follows the sequence that is the signature, which the library would not see. Those of P-256 are short. */
function isWholeDer(signature: string): boolean {
  const bytes = Buffer.from(signature, 'base64url')
  return bytes[0] === 0x30 && bytes[1] === bytes.length - 2
}
