/**
 * Signs the rows of the signed tables and refuses rows that were written without `secret.key`. A row without an HMAC is refused
 * from the time on at which an operator had everything signed (`sluice cluster sign`), and from the start in a database that this or a
 * later release created. `meta` has that time with an HMAC of its own, and each machine remembers it.
 */
import { BoundedMap } from '@sluice/kit'
import { AppError, type Logger, type RowSigner, type SignedRows } from '@sluice/sdk'
import type { RowSigning } from '@sluice/store/shared'
import type { Row } from '../connection/connection.ts'
import { nameOfRow, type SignedName, signedText } from './signed-tables.ts'

/** The key in `meta`. */
export const SIGNED_KEY = 'signed'
/** The number of refused rows that are logged once, not at each read. */
const LOGGED_MAX = 1000
const CURE = "look at it, and sign or remove it: 'sluice cluster sign'"

export interface RowSignaturesOptions {
  /** Default: no row is signed or refused. */
  readonly signer?: RowSigner | undefined
  /** Names the database and the schema, without a password. */
  readonly database: string
  readonly log: Logger
}

export class RowSignatures implements RowSigning {
  readonly columns = ['hmac']
  readonly #signer: RowSigner | undefined
  readonly #database: string
  readonly #log: Logger
  readonly #logged = new BoundedMap<string, string>(LOGGED_MAX)
  #known: SignedRows | undefined
  #marker: string | undefined

  constructor({ signer, database, log }: RowSignaturesOptions) {
    this.#signer = signer
    this.#database = database
    this.#log = log
    this.#known = signer?.remembered(database)
  }

  /** True once rows without an HMAC are refused. */
  get isDemanded(): boolean {
    return this.#known !== undefined
  }

  /** The newest version of the configuration that this machine has read; 0 before HMACs are demanded. */
  get configSeen(): number {
    return this.#known?.configVersion ?? 0
  }

  /** Returns the HMAC of a row; null without a signer. */
  of(table: SignedName, row: Row): string | null {
    return this.#signer?.sign(signedText(table, row)) ?? null
  }

  values(table: SignedName, row: Row): readonly [string | null] {
    return [this.of(table, row)]
  }

  /** Returns the reason why a row does not verify, also before HMACs are demanded; undefined for a row with a right HMAC. */
  faultOf(table: SignedName, row: Row): string | undefined {
    if (!this.#signer) return undefined
    if (typeof row.hmac !== 'string') return 'it has no HMAC, so no node of this release has written it'
    return this.#signer.faultOf(signedText(table, row), row.hmac)
  }

  /** Throws `config_invalid` for a row that is refused. */
  require(table: SignedName, row: Row): void {
    const fault = this.#refusalOf(table, row)
    if (fault !== undefined)
      throw new AppError('config_invalid', `The database's row ${nameOfRow(table, row)} is refused, because ${fault}; ${CURE}.`)
  }

  /** Returns whether a row counts. Logs once why it does not. */
  accepts(table: SignedName, row: Row): boolean {
    const fault = this.#refusalOf(table, row)
    if (fault === undefined) return true
    const name = nameOfRow(table, row)
    if (this.#logged.get(name) !== fault) this.#log.error(`a row of the database is refused: ${CURE}`, { row: name, reason: fault })
    this.#logged.set(name, fault)
    return false
  }

  #refusalOf(table: SignedName, row: Row): string | undefined {
    return this.isDemanded || row.hmac !== null ? this.faultOf(table, row) : undefined
  }

  /** Takes over the record in `meta`. A record with a wrong HMAC, or older than the one of this machine, changes nothing. */
  learn(marker: string | null | undefined): void {
    if (!this.#signer || typeof marker !== 'string' || marker === this.#marker) return
    const rows = readMarker(marker, this.#signer)
    if (rows) this.#marker = marker
    else if (this.#logged.get(SIGNED_KEY) !== marker) {
      this.#logged.set(SIGNED_KEY, marker)
      this.#log.error("the row meta/signed of the database is refused, because its HMAC is wrong: run 'sluice cluster sign'")
    }
    if (rows && rows.atMs > (this.#known?.atMs ?? Number.NEGATIVE_INFINITY)) this.#remember(rows)
  }

  /** Throws `config_invalid` for a version that is older than one that this machine has read. Remembers a newer one. */
  requireNewest(version: number): void {
    if (!this.#known) return
    if (version < this.#known.configVersion)
      throw new AppError(
        'config_invalid',
        `The newest configuration in the database is version ${version}, but this machine has read version ${this.#known.configVersion}. If the database was recovered to an earlier time, run 'sluice store recovered' or 'sluice cluster sign'.`,
      )
    if (version > this.#known.configVersion) this.#remember({ ...this.#known, configVersion: version })
  }

  #remember(rows: SignedRows): void {
    this.#known = rows
    try {
      this.#signer?.remember(this.#database, rows)
    } catch (error) {
      this.#log.error('signed-rows.json cannot be written: after a restart, this node believes what the database says about signed rows', {
        error,
      })
    }
  }
}

const markerText = ({ atMs, configVersion }: SignedRows): string => JSON.stringify(['meta', SIGNED_KEY, atMs, configVersion])

export const writeMarker = (rows: SignedRows, signer: RowSigner): string =>
  JSON.stringify({ at_ms: rows.atMs, config_version: rows.configVersion, hmac: signer.sign(markerText(rows)) })

/** Returns undefined for a marker that no machine with the key has written. */
export function readMarker(marker: string, signer: RowSigner): SignedRows | undefined {
  try {
    const { at_ms, config_version, hmac } = JSON.parse(marker)
    const rows = { atMs: Number(at_ms), configVersion: Number(config_version) }
    return signer.faultOf(markerText(rows), String(hmac)) === undefined ? rows : undefined
  } catch {
    return undefined
  }
}
