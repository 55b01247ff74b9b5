/** Keeps one request and its messages, each only once: the write every provider waits for (§4.2). */
import { hash } from 'node:crypto'
import type { Arrival } from '@sluice/sdk'
import type { Database } from './database.ts'

const KEEP = `
  INSERT INTO inbox (key, channel, account, message_id, sender, session, received_at, verdict, batch, message_json, raw)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const KNOWN = 'SELECT 1 FROM inbox WHERE key = ?'
const KEY_BYTES = 16
const USE_UP = `
  INSERT INTO nonces (key, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?`

/** The unit that keeps it, or what there is to say without one; made outside the transaction is what can be. */
export function keeping(db: Database, arrival: Arrival): (() => 'replayed' | (number | null)[]) | (number | null)[] {
  const { channel, verdict, raw, receivedAtMs, once } = arrival
  const nonce = once && { key: hashOf(channel, once.value), untilMs: once.untilMs }
  const messages = arrival.messages.map(({ message, session }) => ({
    key: hashOf(channel, message.account, message.id),
    message,
    session,
    json: JSON.stringify(message),
  }))
  // What is read here was committed before: a message that is known needs no write, and no sync.
  if (!nonce && messages.every(({ key }) => db.get(KNOWN, key))) return messages.map(() => null)
  return () => {
    if (nonce && db.run(USE_UP, nonce.key, nonce.untilMs, receivedAtMs) === 0) return 'replayed'
    let batch: number | null = null
    return messages.map(({ key, session, json, message: { account, id, sender } }) => {
      const body = batch === null ? raw : null
      const number = db.insert(KEEP, key, channel, account, id, sender, session, receivedAtMs, verdict, batch, json, body) ?? null
      batch ??= number
      return number
    })
  }
}

/** JSON keeps the texts apart, whatever is in them. Half of the digest is enough, and makes half of the index. */
const hashOf = (...texts: readonly string[]): Buffer => hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, KEY_BYTES)
