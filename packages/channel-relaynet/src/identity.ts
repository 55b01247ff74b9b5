/** The bot's key pair: its signatures, and the keys that it derives from its private key. */
import { createECDH, hkdfSync } from 'node:crypto'
import { schnorr } from '@noble/curves/secp256k1.js'
import { BoundedMap } from '@sluice/kit'
import { AppError, type Secret } from '@sluice/sdk'
import { getConversationKey } from 'nostr-tools/nip44'
import { getEventHash, getPublicKey } from 'nostr-tools/pure'
import { type Rumor, type SignedEvent, unfrozen } from './event.ts'
import { secretKeyOf } from './keys.ts'

const CONVERSATIONS_MAX = 1000

export class Identity {
  readonly pubkey: string
  readonly #secretKey: Uint8Array
  readonly #conversations = new BoundedMap<string, Uint8Array>(CONVERSATIONS_MAX)

  constructor(secretKey: Uint8Array) {
    this.#secretKey = secretKey
    this.pubkey = getPublicKey(secretKey)
  }

  /** Throws `config_invalid` for a text other than a private key. */
  static from(secret: Secret): Identity {
    const secretKey = secretKeyOf(secret)
    if (!secretKey) throw new AppError('config_invalid', '`channels_config.relaynet.private_key` is not a private key of Nostr')
    return new Identity(secretKey)
  }

  /** Returns bytes that only the owner of the private key can compute, and that are the same for the same `purpose`. */
  derive(purpose: string, length = 32): Uint8Array {
    return new Uint8Array(hkdfSync('sha256', this.#secretKey, 'sluice-relaynet', purpose, length))
  }

  /** Returns the event with id and signature. The same event always gets the same signature, so that repeats can be recognised. */
  sign(event: Omit<Rumor, 'id' | 'pubkey'>): SignedEvent {
    const rumor = this.rumor(event)
    const sig = schnorr.sign(Buffer.from(rumor.id, 'hex'), this.#secretKey, this.derive(`signature ${rumor.id}`))
    return { ...rumor, sig: Buffer.from(sig).toString('hex') }
  }

  /** Returns the event with its id, unsigned. */
  rumor(event: Omit<Rumor, 'id' | 'pubkey'>): Rumor {
    const whole = { ...event, pubkey: this.pubkey, id: '' }
    return { ...whole, id: getEventHash(unfrozen(whole)) }
  }

  /** Returns the key of NIP-44 for messages between the bot and `other`. Throws if `other` is not a point of the curve. */
  conversationKey(other: string): Uint8Array {
    const known = this.#conversations.get(other)
    if (known) return known
    const key = getConversationKey(this.#secretKey, other)
    this.#conversations.set(other, key)
    return key
  }

  /** Returns the key without keeping it, for a key pair that is used once. */
  onceKey(other: string): Uint8Array {
    return getConversationKey(this.#secretKey, other)
  }

  /** Returns the key of NIP-04 for messages between the bot and `other`: the x coordinate of the shared point. */
  sharedPoint(other: string): Uint8Array {
    const ecdh = createECDH('secp256k1')
    ecdh.setPrivateKey(this.#secretKey)
    return ecdh.computeSecret(Buffer.from(`02${other}`, 'hex'))
  }
}
