/** Legacy direct messages: https://github.com/nostr-protocol/nips/blob/master/04.md. */
import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { Rumor, SignedEvent } from './event.ts'
import type { Identity } from './identity.ts'

export const LEGACY_MESSAGE = 4

const ENCRYPTED = /^([A-Za-z0-9+/]+={0,2})\?iv=([A-Za-z0-9+/]{22}==)$/

/** Returns the text of a message to the bot; undefined when it cannot be decrypted. */
export function decryptLegacy(identity: Identity, event: Rumor): string | undefined {
  const [, data, iv] = ENCRYPTED.exec(event.content) ?? []
  if (data === undefined || iv === undefined) return undefined
  try {
    const decipher = createDecipheriv('aes-256-cbc', identity.sharedPoint(event.pubkey), Buffer.from(iv, 'base64'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat([decipher.update(data, 'base64'), decipher.final()]))
  } catch {
    return undefined
  }
}

/** Returns the signed event with `text` for `recipient`. The same arguments yield the same event. */
export function encryptLegacy(
  identity: Identity,
  recipient: string,
  { text, createdAt, replyTo }: { readonly text: string; readonly createdAt: number; readonly replyTo: string | undefined },
): SignedEvent {
  const iv = identity.derive(`nip04 ${recipient} ${createdAt} ${text}`, 16)
  const cipher = createCipheriv('aes-256-cbc', identity.sharedPoint(recipient), iv)
  const content = `${cipher.update(text, 'utf8', 'base64')}${cipher.final('base64')}?iv=${Buffer.from(iv).toString('base64')}`
  const tags = [['p', recipient], ...(replyTo === undefined ? [] : [['e', replyTo]])]
  return identity.sign({ kind: LEGACY_MESSAGE, created_at: createdAt, tags, content })
}
