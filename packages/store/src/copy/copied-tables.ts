/**
 * The tables that a copy between the embedded database and PostgreSQL takes over. Columns of the same name hold the same values. The
 * copy itself finds them in both schemas, so that this list names only the differences.
 */

export interface CopiedTable {
  readonly name: string
  /** The columns whose order the copy follows; unique together. */
  readonly key: readonly string[]
  /** Columns that only PostgreSQL has, each with the SQL that computes it from a row of the embedded database. */
  readonly derived?: Readonly<Record<string, string>>
  /** Columns that are truth values in PostgreSQL, and 0 or 1 in the embedded database. */
  readonly flags?: readonly string[]
  /** Columns that have the words of a memory, each database in its own form. */
  readonly computed?: readonly string[]
  /** A column that PostgreSQL has in a table of its own, by the number of the row. A null has no row there. */
  readonly apart?: { readonly column: string; readonly table: string; readonly type: string }
  /** Columns that only PostgreSQL has: the process that works on the row at the moment, and the HMAC of the row. */
  readonly leftOut?: readonly string[]
  /** True: the row number of the embedded database is the column `number` in PostgreSQL. */
  readonly hasHiddenNumber?: true
  /** True: the numbers of deleted rows are not used again. */
  readonly neverReuses?: true
}

const marked = (...states: readonly string[]): string =>
  `CASE WHEN state IN (${states.map((state) => `'${state}'`).join(', ')}) THEN state END`

/** In an order in which each row follows the rows that it refers to. Turns and messages come before what their end would change. */
export const COPIED_TABLES: readonly CopiedTable[] = [
  { name: 'sessions', key: ['number'], derived: { key: 'key' }, neverReuses: true },
  { name: 'messages', key: ['session', 'up_to'] },
  { name: 'session_summaries', key: ['session'], flags: ['untrusted'] },
  {
    name: 'turns',
    key: ['id'],
    derived: { shard: 'shard_of_turn(session_id, id)' },
    flags: ['abort_requested'],
    leftOut: ['process', 'place'],
  },
  { name: 'dropped_costs', key: ['quarter', 'agent', 'model'] },
  {
    name: 'inbox',
    key: ['number'],
    apart: { column: 'raw', table: 'inbox_bodies', type: 'bytea' },
    derived: { shard: 'shard_of_session(session)', marked: marked('dead', 'limited', 'discarded') },
    neverReuses: true,
  },
  { name: 'nonces', key: ['key'] },
  {
    name: 'outbox',
    key: ['number'],
    derived: {
      shard: 'shard_of_conversation(channel, account, to_json)',
      marked: marked('ambiguous', 'dead', 'discarded'),
      is_edit: "extras_json ->> '$.edits' IS NOT NULL",
      // The parts of one reply have consecutive numbers in the embedded database.
      reply: "CASE WHEN parts > 1 THEN 'copied-' || (number - part) END",
    },
    flags: ['is_edit', 'repeated'],
    neverReuses: true,
  },
  {
    name: 'approvals',
    key: ['number'],
    // The approval of a tool call belongs to the shard of its turn.
    derived: {
      shard: "coalesce((SELECT shard_of_turn(session_id, id) FROM turns WHERE id = run_id AND gate = 'tool'), shard_of(run_id))",
    },
    neverReuses: true,
  },
  { name: 'approval_prompts', key: ['outbox'] },
  {
    name: 'sop_runs',
    key: ['number'],
    derived: { shard: 'shard_of(id)', starter: "run_json -> '$.event.starter'" },
    neverReuses: true,
  },
  { name: 'sop_ends', key: ['sop'] },
  { name: 'sop_events', key: ['number'], neverReuses: true },
  { name: 'sop_audit', key: ['number'] },
  { name: 'devices', key: ['number'], leftOut: ['hmac'], hasHiddenNumber: true, neverReuses: true },
  { name: 'revoked_devices', key: ['id'] },
  { name: 'pairing_codes', key: ['number'], leftOut: ['hmac'], hasHiddenNumber: true, neverReuses: true },
  { name: 'memories', key: ['number'], flags: ['untrusted'], computed: ['words'], neverReuses: true },
  { name: 'key_values', key: ['owner', 'key'], leftOut: ['hmac'] },
  { name: 'admissions', key: ['id', 'client'], flags: ['open'], leftOut: ['process'] },
  { name: 'spending', key: ['client', 'day'] },
  { name: 'held_back', key: ['client', 'cause'] },
  { name: 'loops', key: ['session'] },
]

/** Tables of one database that a copy leaves out: who works with the database at the moment, indexes, and sums of other tables. */
export const LEFT_OUT_TABLES: readonly string[] = [
  ...['leases', 'inbox_numbers', 'upgrades', 'sqlite_sequence'],
  ...['costs_by_model', 'memory_counts'],
]

/** The values of one row by column, as PostgreSQL has them: truth values are booleans and bytes are `Uint8Array`. */
export type CopiedRow = Record<string, string | number | boolean | Uint8Array | null>

/** The data outside of rows: numbers that were given before, and the time of the last upgrade. */
export interface CopiedNumbers {
  /** The highest number that each table with `neverReuses` ever gave. */
  readonly highest: Readonly<Record<string, number>>
  /** The number of the last audit record, also when it was cut off. */
  readonly audit: number
  readonly upgradedAtMs: number | null
}

/** The columns that the checksum of a row covers: the ones that both databases store. */
export const sharedColumns = (table: CopiedTable, columns: readonly string[]): readonly string[] =>
  columns.filter((column) => !Object.hasOwn(table.derived ?? {}, column) && !table.computed?.includes(column))
