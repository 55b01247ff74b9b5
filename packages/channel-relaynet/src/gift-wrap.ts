/** Seals and gift wraps (https://github.com/nostr-protocol/nips/blob/master/59.md) of private messages. */
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { decrypt, encrypt } from 'nostr-tools/nip44'
import { type Rumor, readRumor, readSigned, type SignedEvent } from './event.ts'
import { HIDDEN_SECS } from './hidden-time.ts'
import { Identity } from './identity.ts'

export const SEAL = 13
export const GIFT_WRAP = 1059

/**
 * Returns the message in a gift wrap whose signature was verified. Undefined unless the bot can decrypt it, the seal is signed by
 * its sender, and the message inside names the same sender: otherwise anyone could write in the name of another.
 */
export function unwrap(identity: Identity, wrap: SignedEvent): Rumor | undefined {
  const seal = readSigned(openQuietly(wrap.content, () => identity.onceKey(wrap.pubkey)))
  if (seal?.kind !== SEAL) return undefined
  const rumor = readRumor(openQuietly(seal.content, () => identity.conversationKey(seal.pubkey)))
  return rumor?.pubkey === seal.pubkey ? rumor : undefined
}

/** Returns the gift wrap of a message for one recipient. The same message always gets the same wrap, so that repeats are dropped. */
export function wrap(identity: Identity, rumor: Rumor, recipient: string): SignedEvent {
  const purpose = `${rumor.id} ${recipient}`
  const sealed = encrypt(JSON.stringify(rumor), identity.conversationKey(recipient), identity.derive(`seal ${purpose}`))
  const seal = identity.sign({ kind: SEAL, created_at: hiddenTime(identity, rumor, `seal time ${purpose}`), tags: [], content: sealed })
  const once = onceIdentity(identity, `wrap key ${purpose}`)
  return once.sign({
    kind: GIFT_WRAP,
    created_at: hiddenTime(identity, rumor, `wrap time ${purpose}`),
    tags: [['p', recipient]],
    content: encrypt(JSON.stringify(seal), once.onceKey(recipient), identity.derive(`wrap ${purpose}`)),
  })
}

/** Returns a key pair that only the bot can derive. */
function onceIdentity(identity: Identity, purpose: string): Identity {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return new Identity(identity.derive(`${purpose} ${attempt}`))
    } catch {
      // One of 2^127 derived values is beyond the order of the curve and no key.
    }
  }
}

function hiddenTime(identity: Identity, { created_at }: Rumor, purpose: string): number {
  const share = Buffer.from(identity.derive(purpose, 4)).readUInt32BE() / 2 ** 32
  return created_at - Math.floor(share * HIDDEN_SECS)
}

function openQuietly(content: string, key: () => Uint8Array): unknown {
  try {
    return parsedOrUndefined(decrypt(content, key()))
  } catch {
    return undefined
  }
}
