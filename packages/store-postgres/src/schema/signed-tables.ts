/** The tables whose rows say what nodes may do and who may ask them to, with the columns that an HMAC covers. */
import { toText } from '@sluice/store/shared'
import type { All, Row } from '../connection/connection.ts'

interface SignedTable {
  /** The type of each column of the key, none of which ever changes. */
  readonly key: Readonly<Record<string, string>>
  readonly covered: readonly string[]
  /** Only this row is read. Default: each row of the table. */
  readonly only?: string
  /** The columns that name a row for people. Default: `key`. */
  readonly named?: readonly string[]
}

const NEWEST = 'SELECT max(version) AS version FROM config'

/** Resolves to the newest version of the configuration; 0 before the first one. */
export const newestVersion = async (all: All): Promise<number> => Number((await all(NEWEST))[0]?.version ?? 0)

export const SIGNED_TABLES = {
  // Nodes take the newest version only.
  config: { key: { version: 'bigint' }, covered: ['version', 'text', 'by_whom'], only: 'version = (SELECT max(version) FROM config)' },
  devices: {
    key: { number: 'bigint' },
    named: ['id'],
    covered: ['id', 'name', 'role', 'token_hash', 'created_at', 'expires_at', 'issued_by'],
  },
  pairing_codes: { key: { number: 'bigint' }, named: ['hash'], covered: ['hash', 'role', 'expires_at'] },
  one_time_keys: {
    key: { number: 'bigint' },
    named: ['purpose', 'owner', 'hash'],
    covered: ['purpose', 'owner', 'hash', 'value_json', 'expires_at'],
  },
  // Accepted procedures and tools, reminders, passkeys, and whatever else features keep.
  key_values: { key: { owner: 'text', key: 'bytea' }, covered: ['owner', 'key', 'value_json'] },
} as const satisfies Record<string, SignedTable>

export type SignedName = keyof typeof SIGNED_TABLES

export const SIGNED_NAMES = Object.keys(SIGNED_TABLES) as readonly SignedName[]

export const aboutTable = (table: SignedName): SignedTable => SIGNED_TABLES[table]

/** Returns what an HMAC covers. The name of the table and the values that are the key of a row bind it to its place. */
export const signedText = (table: SignedName, row: Row): string =>
  JSON.stringify([table, ...aboutTable(table).covered.map((column) => plain(row[column]))])

/** A text is signed as the database stores it. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  return typeof value === 'string' ? value.toWellFormed() : (value ?? null)
}

/** Names a row for people. */
export const nameOfRow = (table: SignedName, row: Row): string => {
  const { key, named = Object.keys(key) } = aboutTable(table)
  return [table, ...named.map((column) => shown(row[column]))].join('/')
}

/** Returns the values that an HMAC covers, with keys as texts. */
export const shownValues = (table: SignedName, row: Row): Readonly<Record<string, unknown>> =>
  Object.fromEntries(aboutTable(table).covered.map((column) => [column, shown(row[column])]))

const shown = (value: unknown): unknown => (value instanceof Uint8Array ? toText(value) : value)
