/** `sluice inbox list`, `inbox dead`, `outbox list` and `outbox dead`: one page of entries, newest first. */
import { AppError, type DeliveryFilter, type Store } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { limitOption, wholeNumber } from '../option-values.ts'
import { withStore } from '../with-store.ts'

/** An entry of either box. */
export interface Delivery {
  readonly number: number
  readonly state: string
}

export interface DeliveryStore<Row> {
  list(filter: DeliveryFilter): Promise<Row[]>
  get(number: number): Promise<Row | undefined>
  replay(number: number): Promise<boolean>
}

/** The differences between the commands of the inbox and the commands of the outbox. */
export interface DeliveryBox<Row extends Delivery> {
  readonly name: 'inbox' | 'outbox'
  readonly states: readonly string[]
  /** The states that only an operator changes, with a replay. */
  readonly replayableStates: readonly string[]
  /** The outcome of a replay, after the number of replayed entries. */
  readonly replayed: { readonly one: string; readonly many: string }
  readonly headings: readonly string[]
  /** The time at which the entry was received or queued, in milliseconds. */
  atMs(row: Row): number
  /** The texts of a row of the table. */
  cells(row: Row): readonly string[]
  /** The JSON form of an entry. */
  shown(row: Row): object
  of(store: Store): DeliveryStore<Row>
  /** Throws `not_found` or `conflict`. */
  replay(store: Store, number: number): Promise<void>
}

/** Prints the entries that the options select; with `states`, only entries in one of these states. */
export const listDeliveries = <Row extends Delivery>(
  box: DeliveryBox<Row>,
  context: CliContext,
  states?: readonly string[],
): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json } = context
    const filter = parseFilter(box, context)
    // One entry more than the page shows whether there are older entries.
    const pageAndOne = { ...filter, limit: filter.limit + 1 }
    const pages = await Promise.all(
      states ? states.map((state) => box.of(store).list({ ...pageAndOne, state })) : [box.of(store).list(pageAndOne)],
    )
    const found = pages.flat().toSorted((a, b) => b.number - a.number)
    const rows = found.slice(0, filter.limit)
    if (json) out.json(rows.map(box.shown))
    else if (rows.length === 0) out.print(`nothing ${states ? `${states.join(' or ')} ` : ''}in the ${box.name}`)
    else out.table(box.headings, rows.map(box.cells))
    if (found.length > rows.length) out.warn(`older ones: add --before ${rows.at(-1)?.number}`)
    return 0
  })

function parseFilter<Row extends Delivery>({ name, states }: DeliveryBox<Row>, context: CliContext): DeliveryFilter {
  const { before, state, channel } = context.options
  if (typeof state === 'string' && !states.includes(state))
    throw new AppError('invalid_request', `--state wants one of ${states.join(', ')} for the ${name}, not '${state}'`)
  return {
    limit: limitOption(context),
    ...(typeof before === 'string' && { before: wholeNumber('--before', before, 1) }),
    ...(typeof state === 'string' && { state }),
    ...(typeof channel === 'string' && { channel }),
  }
}
