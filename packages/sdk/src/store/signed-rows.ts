/** The HMACs by which the nodes that share a database recognize what they have written. */

/** What an operator has had signed in a shared database. */
export interface SignedRows {
  /** When the rows were signed last. From then on, every row that is covered must have a right HMAC. */
  readonly atMs: number
  /** The newest version of the configuration then or since. An older one is refused. */
  readonly configVersion: number
}

/** Shows by `secret.key` that rows of a shared database were written by a machine that has this file. */
export interface RowSigner {
  /** Returns the id of the key that signs. Creates a missing key. */
  keyId(): string
  /** Returns the HMAC of a text. Creates a missing key. */
  sign(text: string): string
  /** Returns the reason why the HMAC does not verify; undefined when it verifies. */
  faultOf(text: string, hmac: string): string | undefined
  /** Returns the state of a database that this machine has seen. A user of the database cannot change this record. */
  remembered(database: string): SignedRows | undefined
  remember(database: string, rows: SignedRows): void
}

/** A row of a shared database that has no right HMAC. */
export interface UnverifiedRow {
  /** The table and the key of the row, such as `config/2`. */
  readonly name: string
  /** The values that the HMAC covers, by column. */
  readonly values: Readonly<Record<string, unknown>>
  /** Why it is not verified; null for a row without an HMAC. */
  readonly fault: string | null
}

/** Returns the rows that nodes refuse. */
export const refusedRows = <Row extends Pick<UnverifiedRow, 'fault'>>({
  isDemanded,
  unverified,
}: {
  readonly isDemanded: boolean
  readonly unverified: readonly Row[]
}): readonly Row[] => unverified.filter(({ fault }) => isDemanded || fault !== null)

/** Which rows of configuration, devices and grants are not verified. */
export interface RowSurvey {
  /** True once rows without an HMAC are refused. A row with a wrong one always is. */
  readonly isDemanded: boolean
  readonly unverified: readonly UnverifiedRow[]
  /** The newest version of the configuration, which may be older than the one that this machine has read. 0 for none. */
  readonly configVersion: number
  /** The newest version that this machine has read; 0 before rows were signed. */
  readonly configSeen: number
}
