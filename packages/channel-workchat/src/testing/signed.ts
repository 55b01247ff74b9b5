/** Encrypts and signs requests as the platform does, without the code of the channel. */
import { createCipheriv, createHash } from 'node:crypto'

const NONCE = 'nonce01'

/** Returns the headers of a signed request. */
export function workchatSignature(
  body: string | Uint8Array,
  { encryptKey, atMs, nonce = NONCE }: { readonly encryptKey: string; readonly atMs: number; readonly nonce?: string },
): Record<string, string> {
  const time = String(Math.floor(atMs / 1000))
  const hash = createHash('sha256').update(`${time}${nonce}${encryptKey}`).update(body)
  return { 'X-Lark-Request-Timestamp': time, 'X-Lark-Request-Nonce': nonce, 'X-Lark-Signature': hash.digest('hex') }
}

/** Returns a body as `{"encrypt": …}`. The initialization vector is fixed, so that a request is the same each time. */
export function workchatEncrypted(json: string, encryptKey: string): string {
  const iv = Buffer.alloc(16, 7)
  const cipher = createCipheriv('aes-256-cbc', createHash('sha256').update(encryptKey).digest(), iv)
  return JSON.stringify({ encrypt: Buffer.concat([iv, cipher.update(json), cipher.final()]).toString('base64') })
}
