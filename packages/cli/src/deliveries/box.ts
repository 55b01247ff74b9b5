/** What the commands on the inbox and those on the outbox have in common: each is written once, for either box. */
import type { DeliveryFilter, Store } from '@sluice/sdk'

export interface BoxStore<Row> {
  list(filter: DeliveryFilter): Promise<Row[]>
  get(number: number): Promise<Row | undefined>
  replay(number: number): Promise<boolean>
}

export interface Box<Row extends { readonly number: number; readonly state: string }> {
  readonly name: 'inbox' | 'outbox'
  readonly states: readonly string[]
  /** States in which a row is left to the operator. */
  readonly left: readonly string[]
  /** What becomes of a replayed row, after how many there are of them. */
  readonly replayed: { readonly one: string; readonly many: string }
  readonly headings: readonly string[]
  /** When it was received or queued. */
  atMs(row: Row): number
  cells(row: Row): readonly string[]
  /** For programs. */
  shown(row: Row): object
  of(store: Store): BoxStore<Row>
  /** Throws `not_found` or `conflict`. */
  replay(store: Store, number: number): Promise<void>
}
