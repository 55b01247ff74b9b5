/** Stores an arrived request and its messages, each once. The platform gets its answer only after this write. */

import type { SQLInputValue } from 'node:sqlite'
import type { Arrival, InboxStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { joinTexts, rowKey } from './hashed-keys.ts'
import type { RecentIds } from './recent-ids.ts'

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

/** The row numbers of the messages, null for a known one; or `replayed` for a nonce that was used before. */
type KeepResult = 'replayed' | readonly (number | null)[]

/** Clear `recent` when rows are dropped, because their ids may arrive again. */
export function createKeep(db: Database, writer: Writer, recent: RecentIds): (arrival: Arrival) => Promise<KeepResult> {
  const numbers = new NextNumber(db)
  return (arrival) => {
    const { channel, messages, nonce } = arrival
    const keys = messages.map(({ message: { account, id } }) => rowKey(joinTexts(channel, account, id)))
    if (!nonce && keys.every((key) => recent.has(key))) return Promise.resolve(keys.map(() => null))
    return writer.write(prepareArrival(db, numbers, arrival, keys), (kept) => {
      if (kept !== 'replayed') for (const key of keys) recent.add(key)
    })
  }
}

/** Reads the file only for messages that are not recent. */
export function createKnown(db: Database, recent: RecentIds): InboxStore['known'] {
  const isKnown = (key: Buffer): boolean => recent.has(key) || db.get(KNOWN, key) !== undefined
  return async (channel, messages) => db.read(() => messages.map(({ account, id }) => isKnown(rowKey(joinTexts(channel, account, id)))))
}

/** Builds keys and JSON outside the transaction. The returned write stores the request. */
function prepareArrival(
  db: Database,
  numbers: NextNumber,
  { channel, verdict, raw, receivedAtMs, nonce, messages, trace = undefined }: Arrival,
  keys: readonly Buffer[],
): () => KeepResult {
  const nonceKey = nonce && rowKey(joinTexts(channel, nonce.value))
  const texts = raw === null ? messages.map(({ message }) => JSON.stringify(message)) : []
  return () => {
    if (nonce && nonceKey && db.run(USE_NONCE, nonceKey, nonce.untilMs, receivedAtMs) === 0) return 'replayed'
    let batch: number | null = null
    return messages.map(({ message: { account, id, sender }, session, kind = null, approval }, index) => {
      const number = numbers.insert(
        keys[index] ?? EMPTY,
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
        approval?.runId ?? null,
        approval?.stepId ?? null,
        texts[index] ?? null,
        batch === null ? raw : null,
      )
      if (raw !== null) batch ??= number
      return number
    })
  }
}

const EMPTY = Buffer.alloc(0)

/**
 * Inserts messages, each with a number that no message ever had. The file gives the number after the highest one, unless the row with the
 * highest one was deleted. The first row of a transaction finds that out for the others, because unfinished rows are not deleted.
 */
class NextNumber {
  readonly #db: Database
  #checked = 0

  constructor(db: Database) {
    this.#db = db
  }

  /** Part of a write. Returns null for a known message. */
  insert(...values: readonly SQLInputValue[]): number | null {
    const number = this.#db.insert(KEEP, this.#next(), ...values)
    if (number === undefined) return null
    this.#checked = this.#db.transactions
    return number
  }

  /** Returns null if the file is to choose the number. */
  #next(): number | null {
    if (this.#checked === this.#db.transactions) return null
    const deleted = this.#db.get<{ highest: number }>(DELETED_NUMBER)
    return deleted ? deleted.highest + 1 : null
  }
}
