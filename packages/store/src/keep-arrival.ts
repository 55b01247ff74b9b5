/** Stores an arrived request and its messages, each once. The platform gets its answer only after this write. */

import { BoundedMap } from '@sluice/kit'
import type { Arrival, InboxStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { Writer } from './group-commit.ts'
import { joinTexts, rowKey } from './hashed-keys.ts'

const KEEP = `
  INSERT INTO inbox (
    number, key, received_at, kind, channel, account, sender, session, message_id, verdict, batch, trace, approval_run_id,
    approval_step_id, message_json, raw
  ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
// The highest number that was given, when the row that has it was deleted.
const DELETED_NUMBER = 'SELECT highest FROM inbox_numbers WHERE rowid = 1 AND highest > (SELECT coalesce(max(number), 0) FROM inbox)'
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
    kind,
    json: raw === null ? JSON.stringify(message) : null,
    approval: [approval?.runId ?? null, approval?.stepId ?? null] as const,
  }))
  return () => {
    if (nonce && nonceKey && db.run(USE_NONCE, nonceKey, nonce.untilMs, receivedAtMs) === 0) return 'replayed'
    let batch: number | null = null
    return rows.map(({ key, kind, session, json, approval, message: { account, id, sender } }) => {
      const about = [
        key,
        receivedAtMs,
        kind,
        channel,
        account,
        sender,
        session,
        id,
        verdict,
        batch,
        trace ?? null,
        ...approval,
        json,
      ] as const
      const number = db.insert(KEEP, nextNumber(db), ...about, batch === null ? raw : null) ?? null
      if (raw !== null) batch ??= number
      return number
    })
  }
}

/** Part of a write. Returns null where the number after the highest of the table is a new one. */
const nextNumber = (db: Database): number | null => {
  const deleted = db.get<{ highest: number }>(DELETED_NUMBER)
  return deleted ? deleted.highest + 1 : null
}
