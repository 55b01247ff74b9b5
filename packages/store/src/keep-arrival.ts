/** Stores an arrived request and its messages, each once. The platform gets its answer only after this write. */

import { BoundedMap } from '@sluice/kit'
import type { Arrival, InboxStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { Writer } from './group-commit.ts'
import { joinTexts, rowKey } from './hashed-keys.ts'

const KEEP = `
  INSERT INTO inbox (
    key, channel, account, message_id, sender, session, received_at, verdict, batch, message_json, raw, trace,
    kind, approval_run_id, approval_step_id
  ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const KNOWN = 'SELECT 1 FROM inbox WHERE key = ?'
const USE_NONCE = `
  INSERT INTO nonces (key, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?`
const RECENT_MAX = 10_000
const RECENT_CHARS_MAX = 256

/** The row numbers of the messages, null for a known one; or `replayed` for a nonce that was used before. */
type KeepResult = 'replayed' | readonly (number | null)[]

/** The ids of recently stored messages. A platform repeats a message soon, so most repeats are recognized without the file. */
export const createRecentIds = (): BoundedMap<string, true> => new BoundedMap(RECENT_MAX)

/** Clear `recent` when rows are dropped, because their ids may arrive again. */
export function createKeep(db: Database, writer: Writer, recent: BoundedMap<string, true>): (arrival: Arrival) => Promise<KeepResult> {
  return async (arrival) => {
    const { channel, messages, nonce } = arrival
    const ids = messages.map(({ message: { account, id } }) => joinTexts(channel, account, id))
    if (!nonce && ids.every((id) => recent.has(id))) return ids.map(() => null)
    const kept = await writer.write(prepareArrival(db, arrival, ids))
    if (kept !== 'replayed') for (const id of ids) if (id.length <= RECENT_CHARS_MAX) recent.set(id, true)
    return kept
  }
}

/** Reads the file only for messages that are not recent. */
export function createKnown(db: Database, recent: BoundedMap<string, true>): InboxStore['known'] {
  const isKnown = (id: string): boolean => recent.has(id) || db.get(KNOWN, rowKey(id)) !== undefined
  return async (channel, messages) => db.read(() => messages.map(({ account, id }) => isKnown(joinTexts(channel, account, id))))
}

/** Builds keys and JSON outside the transaction. The returned write stores the request. */
function prepareArrival(
  db: Database,
  { channel, verdict, raw, receivedAtMs, nonce, messages, trace }: Arrival,
  ids: readonly string[],
): () => KeepResult {
  const nonceKey = nonce && rowKey(joinTexts(channel, nonce.value))
  const rows = messages.map(({ message, session, kind = null, approval }, index) => ({
    key: rowKey(ids[index] ?? ''),
    message,
    session,
    json: JSON.stringify(message),
    answers: [kind, approval?.runId ?? null, approval?.stepId ?? null] as const,
  }))
  return () => {
    if (nonce && nonceKey && db.run(USE_NONCE, nonceKey, nonce.untilMs, receivedAtMs) === 0) return 'replayed'
    let batch: number | null = null
    return rows.map(({ key, session, json, answers, message: { account, id, sender } }) => {
      const body = batch === null ? raw : null
      const span = trace ?? null
      const number =
        db.insert(KEEP, key, channel, account, id, sender, session, receivedAtMs, verdict, batch, json, body, span, ...answers) ?? null
      batch ??= number
      return number
    })
  }
}
