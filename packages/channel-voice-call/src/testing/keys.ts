/** The key that signs Telnyx's requests in tests: an Ed25519 key with the seed 00 to 1f. */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto'

/** The head of an Ed25519 private key in the form that Node reads (RFC 8410), before its 32 bytes. */
const KEY_HEAD = '302e020100300506032b657004220420'
const SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('hex')

export const TELNYX_PUBLIC_KEY = 'A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg='
const privateKey: KeyObject = createPrivateKey({ key: Buffer.from(KEY_HEAD + SEED, 'hex'), format: 'der', type: 'pkcs8' })

/** The headers of a request that Telnyx makes at this time. */
export function telnyxHeaders(body: string | Uint8Array, atMs: number): { 'telnyx-signature-ed25519': string; 'telnyx-timestamp': string } {
  const time = String(Math.floor(atMs / 1000))
  const signed = Buffer.from(`${time}|${Buffer.from(body).toString('latin1')}`, 'latin1')
  return { 'telnyx-signature-ed25519': sign(null, signed, privateKey).toString('base64'), 'telnyx-timestamp': time }
}
