/** Keeps one request and its messages, each only once: the write every provider waits for (§4.2). */

import { BoundedMap } from '@sluice/kit'
import type { Arrival, InboxStore } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import { idOf, keyOf } from './row-key.ts'

const KEEP = `
  INSERT INTO inbox (
    key, channel, account, message_id, sender, session, received_at, verdict, batch, message_json, raw, trace,
    kind, approval_run_id, approval_step_id
  ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
const KNOWN = 'SELECT 1 FROM inbox WHERE key = ?'
const USE_UP = `
  INSERT INTO nonces (key, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until WHERE until <= ?`
const RECENT_MAX = 10_000
const RECENT_CHARS_MAX = 256

type Kept = 'replayed' | readonly (number | null)[]

/** The ids of messages kept lately. A provider's repeats come soon: they are known without a write, or a look at the file. */
export const createRecentIds = (): BoundedMap<string, true> => new BoundedMap(RECENT_MAX)

/** `recent` is to be cleared when rows are dropped, since their ids may come again. */
export function createKeep(db: Database, writer: GroupCommit, recent: BoundedMap<string, true>): (arrival: Arrival) => Promise<Kept> {
  return async (arrival) => {
    const { channel, messages, once } = arrival
    const ids = messages.map(({ message: { account, id } }) => idOf(channel, account, id))
    if (!once && ids.every((id) => recent.has(id))) return ids.map(() => null)
    const kept = await writer.write(keeping(db, arrival, ids))
    if (kept !== 'replayed') for (const id of ids) if (id.length <= RECENT_CHARS_MAX) recent.set(id, true)
    return kept
  }
}

/** Asks the file only about messages that did not come lately. */
export function createKnown(db: Database, recent: BoundedMap<string, true>): InboxStore['known'] {
  const isKnown = (id: string): boolean => recent.has(id) || db.get(KNOWN, keyOf(id)) !== undefined
  return async (channel, messages) => db.read(() => messages.map(({ account, id }) => isKnown(idOf(channel, account, id))))
}

/** The unit that keeps it; made outside the transaction is what can be. */
function keeping(
  db: Database,
  { channel, verdict, raw, receivedAtMs, once, messages, trace }: Arrival,
  ids: readonly string[],
): () => Kept {
  const nonce = once && { key: keyOf(idOf(channel, once.value)), untilMs: once.untilMs }
  const rows = messages.map(({ message, session, kind = null, approval }, index) => ({
    key: keyOf(ids[index] ?? ''),
    message,
    session,
    json: JSON.stringify(message),
    answers: [kind, approval?.runId ?? null, approval?.stepId ?? null] as const,
  }))
  return () => {
    if (nonce && db.run(USE_UP, nonce.key, nonce.untilMs, receivedAtMs) === 0) return 'replayed'
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
