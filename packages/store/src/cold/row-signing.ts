/** How the tables in `cold` sign rows of a database that machines share. Only the machine with the key writes what nodes trust. */

/** The tables that are signed where the database signs rows. The database knows which of their columns an HMAC covers. */
export type SignedTable = 'devices' | 'key_values' | 'pairing_codes'

export interface RowSigning {
  /** The columns that a signed row has besides its own. */
  readonly columns: readonly string[]
  /** Returns the values of `columns` for a row, which has its columns by their names. */
  values(table: SignedTable, row: object): readonly (string | null)[]
  /** Throws `config_invalid` for a row that is refused. */
  require(table: SignedTable, row: object): void
  /** Returns whether a row counts. */
  accepts(table: SignedTable, row: object): boolean
}

/** Rows of a database that belongs to one machine alone. */
export const UNSIGNED: RowSigning = { columns: [], values: () => [], require: () => {}, accepts: () => true }

/** Returns the SQL `(a, b) VALUES ($1, $2)` of a new row. */
export const newRow = (columns: readonly string[]): string => `(${columns}) VALUES (${columns.map((_, at) => `$${at + 1}`)})`
