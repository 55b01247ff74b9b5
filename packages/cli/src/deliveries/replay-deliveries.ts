/** `sluice inbox replay` and `outbox replay`: entries by number, or every entry that a filter selects. A running daemon notices within a second. */
import { AppError, type Store } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { wholeNumber } from '../option-values.ts'
import { withStore } from '../with-store.ts'
import type { Delivery, DeliveryBox, DeliveryStore } from './list-deliveries.ts'

/** The largest number of entries that one command replays by a filter. */
const REPLAY_MAX = 10_000
const PAGE_ROWS = 500
/** The number of replays that run in parallel and may share a commit. */
const BATCH_ROWS = 100
const FILTERS = ['dead', 'state', 'channel', 'since'] as const
const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** The entries that a replay by filter selects. */
interface Selection<Row> {
  readonly states: readonly string[]
  readonly channel: string | undefined
  isSelected(row: Row): boolean
}

export const replayDeliveries = <Row extends Delivery>(box: DeliveryBox<Row>, context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { args, options } = context
    const isFiltered = FILTERS.some((name) => options[name] !== undefined)
    if (isFiltered && args.length > 0) throw new AppError('invalid_request', 'name numbers or a filter such as --state, not both')
    if (isFiltered) return replaySelected(box, context, store)
    if (args.length === 0)
      throw new AppError('invalid_request', `name what to replay by number or by --state; 'sluice ${box.name} list' shows the numbers`)
    const numbers = args.map((arg) => wholeNumber(`sluice ${box.name} replay`, arg, 1))
    return replayNumbers(box, context, store, numbers)
  })

function parseSelection<Row extends Delivery>(box: DeliveryBox<Row>, { options }: CliContext): Selection<Row> {
  const { dead, state, channel, since } = options
  const allowed = box.replayableStates
  if (dead !== true && typeof state !== 'string')
    throw new AppError('invalid_request', `--channel and --since go with --state (${allowed.join(' or ')})`)
  const states = [...new Set([...(dead === true ? ['dead'] : []), ...(typeof state === 'string' ? state.split(',') : [])])]
  const unknown = states.find((one) => !allowed.includes(one))
  if (unknown !== undefined)
    throw new AppError('invalid_request', `--state wants ${allowed.join(' or ')} for a replay of the ${box.name}, not '${unknown}'`)
  const sinceMs = typeof since === 'string' ? parseSince(since) : Number.NEGATIVE_INFINITY
  return { states, channel: typeof channel === 'string' ? channel : undefined, isSelected: (row) => box.atMs(row) >= sinceMs }
}

/** Parses an age such as `90m`, `6h` or `2d`, or a date, into a time in milliseconds. */
function parseSince(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return Date.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs))
    throw new AppError('invalid_request', `--since wants 90m, 6h, 2d or a date such as 2026-01-31T08:00:00Z, not '${text}'`)
  return atMs
}

/** Replays each entry that can be replayed, then throws the first error; the others are printed. */
async function replayNumbers<Row extends Delivery>(
  box: DeliveryBox<Row>,
  { out, json }: CliContext,
  store: Store,
  numbers: readonly number[],
): Promise<number> {
  const replayed: number[] = []
  const errors: AppError[] = []
  for (const number of new Set(numbers)) {
    try {
      await box.replay(store, number)
      replayed.push(number)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      errors.push(error)
    }
  }
  const [first, ...more] = errors
  if (replayed.length > 0) {
    if (json) out.json({ replayed })
    else out.print(outcome(box, replayed.length))
  }
  for (const { message } of more) out.warn(`sluice: ${message}`)
  if (first) throw first
  return 0
}

async function replaySelected<Row extends Delivery>(box: DeliveryBox<Row>, context: CliContext, store: Store): Promise<number> {
  const { out, json } = context
  const rows = box.of(store)
  const selection = parseSelection(box, context)
  const { numbers, more } = await findOldest(rows, selection)
  const replayed: number[] = []
  const tooOld: number[] = []
  for (let start = 0; start < numbers.length; start += BATCH_ROWS) {
    const batch = numbers.slice(start, start + BATCH_ROWS)
    const done = await Promise.all(batch.map((number) => rows.replay(number)))
    for (const [index, number] of batch.entries()) {
      // The replay of the first part of a reply replays its later parts too: they are no longer in a selected state.
      const isReplayed = done[index] || !selection.states.includes((await rows.get(number))?.state ?? '')
      const list = isReplayed ? replayed : tooOld
      list.push(number)
    }
  }
  if (json) out.json({ replayed, too_old: tooOld, more })
  else {
    out.print(outcome(box, replayed.length))
    if (tooOld.length > 0) out.print(`${tooOld.length} stay ${selection.states.join(' or ')}: their content is no longer kept`)
    if (more) out.print('there are more: run this again')
  }
  return 0
}

/** Returns the numbers of the oldest selected entries, oldest first, at most 10,000; `more` is true if others are selected too. */
export async function findOldest<Row extends Delivery>(
  rows: DeliveryStore<Row>,
  { states, channel, isSelected }: Selection<Row>,
): Promise<{ readonly numbers: readonly number[]; readonly more: boolean }> {
  const found: number[] = []
  let more = false
  for (const state of states) {
    for (let before: number | undefined; ; ) {
      const page = await rows.list({
        limit: PAGE_ROWS,
        state,
        ...(before !== undefined && { before }),
        ...(channel !== undefined && { channel }),
      })
      found.push(...page.filter(isSelected).map(({ number }) => number))
      found.sort((a, b) => b - a)
      more ||= found.length > REPLAY_MAX
      found.splice(0, found.length - REPLAY_MAX)
      before = page.at(-1)?.number
      if (page.length < PAGE_ROWS) break
    }
  }
  return { numbers: found.reverse(), more }
}

const outcome = <Row extends Delivery>({ replayed: { one, many } }: DeliveryBox<Row>, count: number): string =>
  count === 1 ? `1 ${one}` : `${count} ${many}`
