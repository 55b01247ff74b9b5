/**
 * Signatures of requests from QQ; see https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/sign.html. Both sides
 * derive one Ed25519 key from the secret of the bot.
 */
import type { KeyObject } from 'node:crypto'

const SEED_BYTES = 32
const SIGNATURE = /^[0-9a-f]{128}$/i
/** The beginning of a private Ed25519 key in PKCS #8, before its 32 bytes; see RFC 8410. */
const PKCS8_PREFIX = '302e020100300506032b657004220420'

/** Loads the module at the first signature, as `hmac.ts` of the SDK does. */
const crypto = () => process.getBuiltinModule('node:crypto')

export class BotKey {
  readonly #secret: () => string
  #keys: { readonly secret: KeyObject; readonly open: KeyObject } | undefined

  constructor(secret: () => string) {
    this.#secret = secret
  }

  /** Returns the signature of a time and a body in hex. */
  sign(time: string, body: string | Uint8Array): string {
    return crypto().sign(null, signedBytes(time, body), this.#pair().secret).toString('hex')
  }

  /** Tells whether `signature` is the signature of the time and the body, in hex of either case. */
  verifies(signature: string, time: string, body: string | Uint8Array): boolean {
    return SIGNATURE.test(signature) && crypto().verify(null, signedBytes(time, body), this.#pair().open, Buffer.from(signature, 'hex'))
  }

  /** The 32 bytes of the public key, which QQ's documentation shows for an example. */
  publicBytes(): Buffer {
    return this.#pair().open.export({ format: 'der', type: 'spki' }).subarray(-SEED_BYTES)
  }

  #pair() {
    if (this.#keys) return this.#keys
    const bytes = Buffer.from(this.#secret())
    // An empty secret would be known to everyone, and could not be repeated to the length of a seed.
    if (bytes.length === 0) throw new RangeError('the secret of the bot is empty')
    const seed = Buffer.alloc(SEED_BYTES, bytes)
    const secret = crypto().createPrivateKey({ key: Buffer.concat([Buffer.from(PKCS8_PREFIX, 'hex'), seed]), format: 'der', type: 'pkcs8' })
    this.#keys = { secret, open: crypto().createPublicKey(secret) }
    return this.#keys
  }
}

const signedBytes = (time: string, body: string | Uint8Array): Buffer => Buffer.concat([Buffer.from(time), Buffer.from(body)])
