/** Verifies a new credential as a passkey for this gateway (W3C Web Authentication, "Registering a New Credential"). */
import { authenticatorDataIn, unattested } from './attestation-object.ts'
import type { RegisterFinish } from './bodies.ts'
import { clientDataFault } from './client-data.ts'
import { ALGORITHMS, loadWebauthn, loadWebauthnHelpers, type RelyingParty, reasonOf } from './library.ts'
import type { Passkey } from './passkeys.ts'

export type NewPasskey = Pick<Passkey, 'id' | 'publicKey' | 'algorithm' | 'counter' | 'aaguid' | 'mayBeBackedUp' | 'isBackedUp'>

/** The result of a verification: `fault` is a clause for the caller, `detail` is only for the log. */
export type Registration = { readonly passkey: NewPasskey } | { readonly fault: string; readonly detail?: string }

export async function verifyRegistration(body: RegisterFinish, challenge: string, { rpId, origin }: RelyingParty): Promise<Registration> {
  const { id, client_data_json: clientDataJSON } = body
  const fault = clientDataFault(clientDataJSON, { type: 'webauthn.create', challenge, origin })
  if (fault) return { fault }
  const authenticatorData = authenticatorDataIn(Buffer.from(body.attestation_object, 'base64url'))
  if (!authenticatorData) return { fault: 'its attestation object is malformed' }
  const { verifyRegistrationResponse } = await loadWebauthn()
  const attestationObject = unattested(authenticatorData).toString('base64url')
  try {
    const { registrationInfo: info } = await verifyRegistrationResponse({
      response: { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response: { clientDataJSON, attestationObject } },
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS.map(({ alg }) => alg),
    })
    if (!info) return { fault: 'it does not verify' }
    const { credential, aaguid, credentialDeviceType, credentialBackedUp: isBackedUp } = info
    if (credential.id !== id) return { fault: 'its id is not the one in its attestation object' }
    const algorithm = await algorithmOf(credential.publicKey)
    const publicKey = Buffer.from(credential.publicKey).toString('base64url')
    const mayBeBackedUp = credentialDeviceType === 'multiDevice'
    return { passkey: { id, publicKey, algorithm, counter: credential.counter, aaguid, mayBeBackedUp, isBackedUp } }
  } catch (error) {
    return { fault: 'it does not verify', detail: reasonOf(error) }
  }
}

/** A well-formed signature that no key created. A valid key rejects it; an invalid key makes the library throw. */
const NO_SIGNATURE = new Uint8Array([0x30, 6, 2, 1, 1, 2, 1, 1])

/** Returns the COSE algorithm of a public key. Throws if the key does not fit its algorithm or is unusable. */
async function algorithmOf(credentialPublicKey: Uint8Array<ArrayBuffer>): Promise<number> {
  const { cose, decodeCredentialPublicKey, verifySignature } = await loadWebauthnHelpers()
  const key = decodeCredentialPublicKey(credentialPublicKey) as unknown as ReadonlyMap<number, unknown>
  const { kty, alg, crv } = cose.COSEKEYS
  const wanted = ALGORITHMS.find((algorithm) => algorithm.alg === key.get(alg))
  if (!wanted || wanted.kty !== key.get(kty) || (wanted.crv !== undefined && wanted.crv !== key.get(crv)))
    throw new Error('the type of the key does not fit its algorithm')
  await verifySignature({ signature: NO_SIGNATURE, data: NO_SIGNATURE, credentialPublicKey })
  return wanted.alg
}
