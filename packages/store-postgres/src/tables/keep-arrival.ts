/** Stores an arrived request and its messages, each once. The platform gets its answer only after this write. */
import { randomBytes } from 'node:crypto'
import { type Arrival, type InboxStore, shardOfSession } from '@sluice/sdk'
import { joinTexts, type RecentIds, rowKey } from '@sluice/store/shared'
import { sql } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Kind, Tx } from '../connection/group-commit.ts'

const COLUMNS =
  'key, shard, channel, account, message_id, sender, session, received_at, verdict, message_json, trace, kind, approval_run_id, approval_step_id'
const TYPES = 'bytea, smallint, text, text, text, text, text, float8, text, text, text, text, text, text'
/** The parameter after the columns' parameters: the bodies of requests. */
const RAW = 15
const LIST = TYPES.split(', ')
  .map((type, at) => `$${at + 1}::${type}[]`)
  .join(', ')
// The order of arrival is the order of the numbers, by which messages of one conversation run.
const KEEP = `
  WITH kept AS (
      INSERT INTO inbox (${COLUMNS}) SELECT ${COLUMNS} FROM unnest(${LIST}) WITH ORDINALITY AS arrived (${COLUMNS}, place) ORDER BY place
      ON CONFLICT (key) DO NOTHING RETURNING number, key),
    stored AS (
      INSERT INTO inbox_bodies (number, raw)
      SELECT number, raw FROM kept JOIN unnest($1::bytea[], $${RAW}::bytea[]) AS body (key, raw) USING (key) WHERE raw IS NOT NULL)
  SELECT number, key FROM kept`
const ONE = TYPES.split(', ')
  .map((type, at) => `$${at + 1}::${type}`)
  .join(', ')
const KEEP_ONE = `
  WITH kept AS (INSERT INTO inbox (${COLUMNS}) SELECT ${ONE} ON CONFLICT (key) DO NOTHING RETURNING number),
    stored AS (INSERT INTO inbox_bodies (number, raw) SELECT number, $${RAW}::bytea FROM kept WHERE $${RAW}::bytea IS NOT NULL)
  SELECT number FROM kept`
const KEEP_REST = `
  INSERT INTO inbox (${COLUMNS}, batch)
  SELECT ${COLUMNS}, $${RAW}::bigint FROM unnest(${LIST}) WITH ORDINALITY AS arrived (${COLUMNS}, place) ORDER BY place
  ON CONFLICT (key) DO NOTHING RETURNING number, key`
const USE_NONCE = `
  INSERT INTO nonces (key, until) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET until = excluded.until WHERE nonces.until <= $3
  RETURNING 1`
const KNOWN = 'SELECT key, number FROM inbox WHERE key = ANY ($1::bytea[])'

type Kept = 'replayed' | readonly (number | null)[]

interface ArrivedRow {
  readonly shard: number
  readonly key: Buffer
  readonly hex: string
  readonly values: readonly unknown[]
  readonly raw: Uint8Array | null
}

interface Numbered {
  readonly number: number
  readonly key: Buffer
}

/** Requests with one message and no nonce, which most are. */
const KEEP_KIND: Kind<ArrivedRow, number | null> = {
  isArrival: true,
  keys: ({ hex }) => [hex],
  statements: (rows) => [
    sql(
      KEEP,
      ...listOf(rows),
      rows.map(({ raw }) => raw),
    ),
  ],
  results(rows, [kept = []]) {
    const numbers = numbersByKey(kept as unknown as Numbered[])
    return rows.map(({ hex }) => numbers.get(hex) ?? null)
  },
  // A message that was known before gets its number, too: it is at most looked at once more.
  readAgain: (rows) => [
    sql(
      KNOWN,
      rows.map(({ key }) => key),
    ),
  ],
}

const listOf = (rows: readonly ArrivedRow[]): unknown[][] =>
  columnsOf(rows, ...(rows[0]?.values ?? []).map((_, at) => (row: ArrivedRow) => row.values[at]))

const numbersByKey = (rows: readonly Numbered[]): Map<string, number> =>
  new Map(rows.map(({ key, number }) => [key.toString('hex'), number]))

/** Clear `recent` when rows are dropped, because their ids may arrive again. */
export function createKeep(db: Database, recent: RecentIds): InboxStore['keep'] {
  return async (arrival) => {
    const { channel, messages, nonce } = arrival
    const keys = messages.map(({ message: { account, id } }) => rowKey(joinTexts(channel, account, id)))
    if (!nonce && keys.every((key) => recent.has(key))) return keys.map(() => null)
    const rows = keys.flatMap((key, at) => {
      const message = messages[at]
      return message ? [toRow(arrival, message, key)] : []
    })
    const [first] = rows
    const kept: Kept = !nonce && rows.length === 1 && first ? [await db.writer.add(KEEP_KIND, first)] : await keepAll(db, arrival, rows)
    if (kept === 'replayed') return kept
    for (const key of keys) recent.add(key)
    if (db.arrivals) for (const [at, number] of kept.entries()) if (number !== null) db.arrivals.stored(rows[at]?.shard ?? 0, number)
    return kept
  }
}

/** Returns for each message whether its id is known, with one query for all ids that are not recent. */
export function createKnown(db: Database, recent: RecentIds): InboxStore['known'] {
  return async (channel, messages) => {
    const keys = messages.map(({ account, id }) => rowKey(joinTexts(channel, account, id)))
    const others = keys.filter((key) => !recent.has(key))
    const stored = new Set((await db.all<{ key: Buffer }>(KNOWN, others)).map(({ key }) => key.toString('hex')))
    return keys.map((key) => recent.has(key) || stored.has(key.toString('hex')))
  }
}

function toRow(
  { channel, verdict, raw, receivedAtMs, trace, messages }: Arrival,
  { message, session, kind, approval }: Arrival['messages'][number],
  key: Buffer,
): ArrivedRow {
  const { account, id: messageId, sender } = message
  const json = raw === null ? JSON.stringify(message) : null
  const answers = [kind ?? null, approval?.runId ?? null, approval?.stepId ?? null]
  const shard = shardOfSession(session)
  const values = [key, shard, channel, account, messageId, sender, session, receivedAtMs, verdict, json, trace ?? null, ...answers]
  return { shard, key, hex: key.toString('hex'), values, raw: messages.length === 1 ? raw : null }
}

/** A request with a nonce or with several messages. The first message that is new keeps the body for all of them. */
function keepAll(db: Database, { channel, raw, receivedAtMs, nonce }: Arrival, rows: readonly ArrivedRow[]): Promise<Kept> {
  const keep = async (tx: Tx): Promise<Kept> => {
    if (nonce) {
      const used = await tx.get(USE_NONCE, rowKey(joinTexts(channel, nonce.value)), nonce.untilMs, receivedAtMs)
      if (!used) return 'replayed'
    }
    const numbers: (number | null)[] = []
    for (const { values } of rows) {
      const first = await tx.get<{ number: number }>(KEEP_ONE, ...values, raw)
      numbers.push(first?.number ?? null)
      if (!first) continue
      const rest = rows.slice(numbers.length)
      const kept = rest.length > 0 ? await tx.all<Numbered>(KEEP_REST, ...listOf(rest), raw === null ? null : first.number) : []
      const byKey = numbersByKey(kept)
      const hexes = new Set<string>()
      for (const { hex } of rest) {
        numbers.push(hexes.has(hex) ? null : (byKey.get(hex) ?? null))
        hexes.add(hex)
      }
      break
    }
    return numbers
  }
  return db.writer.transaction(keep, { isArrival: true })
}

const PROBE_BYTES = 16_384
const DROP_PROBE = 'WITH body AS (DELETE FROM inbox_bodies WHERE number = $1) DELETE FROM inbox WHERE number = $1'

/** Stores a message as large as an ordinary one, and drops it in the same commit, so that no reader sees it. */
export async function probeArrival(db: Database): Promise<void> {
  // Random bytes, which the server cannot compress.
  const bytes = randomBytes(PROBE_BYTES)
  const values = [bytes.subarray(0, 16), 0, '', '', '', '', '', db.clock.nowMs(), '', null, null, null, null, null]
  const probe = async (tx: Tx): Promise<void> => {
    const kept = await tx.get<{ number: number }>(KEEP_ONE, ...values, bytes)
    if (kept) await tx.all(DROP_PROBE, kept.number)
  }
  await db.writer.transaction(probe, { isArrival: true })
}
