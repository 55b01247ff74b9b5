/** Keeps one request and its messages, each only once: the write every provider waits for (§4.2). */
import { type Arrival, sha256Hex } from '@sluice/sdk'
import type { Database } from './database.ts'

const KEEP = `
  INSERT INTO inbox (key, channel, account, message_id, sender, session, received_at, verdict, batch, message_json, raw)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const USE_UP = `
  INSERT INTO nonces (key, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?`

/** The unit that keeps it; made outside the transaction is what can be. */
export function keeping(db: Database, arrival: Arrival): () => 'replayed' | (number | null)[] {
  const { channel, verdict, raw, receivedAtMs, once } = arrival
  const nonce = once && { key: hashOf(channel, once.value), untilMs: once.untilMs }
  const messages = arrival.messages.map(({ message, session }) => ({
    key: hashOf(channel, message.account, message.id),
    message,
    session,
    json: JSON.stringify(message),
  }))
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
const hashOf = (...texts: readonly string[]): Buffer => Buffer.from(sha256Hex(JSON.stringify(texts)).slice(0, 32), 'hex')
