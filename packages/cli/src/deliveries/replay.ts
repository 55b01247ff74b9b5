/** `sluice inbox replay` and `sluice outbox replay`: by number, or all that a filter selects. A running daemon notices within a second. */
import { AppError, type Store } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'
import type { Box, BoxStore } from './box.ts'

/** Rows replayed by one command, oldest first. */
const REPLAY_MAX = 10_000
const PAGE_ROWS = 500
/** Replays that may share a commit. */
const BATCH_ROWS = 100
const FILTERS = ['dead', 'state', 'channel', 'since'] as const
const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const

type AnyRow = { readonly number: number; readonly state: string }

/** Which rows a bulk replay selects. */
interface Selection<Row> {
  readonly states: readonly string[]
  readonly channel: string | undefined
  isWanted(row: Row): boolean
}

export const replay = <Row extends AnyRow>(box: Box<Row>, context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { args, options } = context
    const isFiltered = FILTERS.some((name) => options[name] !== undefined)
    if (isFiltered && args.length > 0) throw new AppError('invalid_request', 'name numbers or a filter such as --state, not both')
    if (isFiltered) return replaySelected(box, context, store)
    if (args.length === 0)
      throw new AppError('invalid_request', `name what to replay by number or by --state; 'sluice ${box.name} list' shows the numbers`)
    const numbers = args.map((arg) => wholeNumber(`sluice ${box.name} replay`, arg, 1))
    return replayNumbers(box, context, store, numbers)
  })

function selectionOf<Row extends AnyRow>(box: Box<Row>, { options }: CliContext): Selection<Row> {
  const { dead, state, channel, since } = options
  if (dead !== true && typeof state !== 'string')
    throw new AppError('invalid_request', `--channel and --since go with --state (${box.left.join(' or ')})`)
  const states = [...new Set([...(dead === true ? ['dead'] : []), ...(typeof state === 'string' ? state.split(',') : [])])]
  const unknown = states.find((one) => !box.left.includes(one))
  if (unknown !== undefined)
    throw new AppError('invalid_request', `--state wants ${box.left.join(' or ')} for a replay of the ${box.name}, not '${unknown}'`)
  const sinceMs = typeof since === 'string' ? timeOf(since) : Number.NEGATIVE_INFINITY
  return { states, channel: typeof channel === 'string' ? channel : undefined, isWanted: (row) => box.atMs(row) >= sinceMs }
}

/** `90m`, `6h`, `2d`: so long ago; else a date. */
function timeOf(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return Date.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs))
    throw new AppError('invalid_request', `--since wants 90m, 6h, 2d or a date such as 2026-01-31T08:00:00Z, not '${text}'`)
  return atMs
}

/** One that cannot be replayed does not keep the others from it. */
async function replayNumbers<Row extends AnyRow>(
  box: Box<Row>,
  { out, json }: CliContext,
  store: Store,
  numbers: readonly number[],
): Promise<number> {
  const replayed: number[] = []
  const refusals: AppError[] = []
  for (const number of new Set(numbers)) {
    try {
      await box.replay(store, number)
      replayed.push(number)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      refusals.push(error)
    }
  }
  const [first, ...more] = refusals
  if (replayed.length > 0) {
    if (json) out.json({ replayed })
    else out.print(counted(box, replayed.length))
  }
  for (const { message } of more) out.warn(`sluice: ${message}`)
  if (first) throw first
  return 0
}

async function replaySelected<Row extends AnyRow>(box: Box<Row>, context: CliContext, store: Store): Promise<number> {
  const { out, json } = context
  const rows = box.of(store)
  const selection = selectionOf(box, context)
  const { numbers, more } = await oldestOf(rows, selection)
  const replayed: number[] = []
  const tooOld: number[] = []
  for (let at = 0; at < numbers.length; at += BATCH_ROWS) {
    const batch = numbers.slice(at, at + BATCH_ROWS)
    const done = await Promise.all(batch.map((number) => rows.replay(number)))
    for (const [index, number] of batch.entries()) {
      // A later part of a reply is replayed with the first one, and has left its state by then.
      const isReplayed = done[index] || !selection.states.includes((await rows.get(number))?.state ?? '')
      const list = isReplayed ? replayed : tooOld
      list.push(number)
    }
  }
  if (json) out.json({ replayed, too_old: tooOld, more })
  else {
    out.print(counted(box, replayed.length))
    if (tooOld.length > 0) out.print(`${tooOld.length} stay ${selection.states.join(' or ')}: their content is no longer kept`)
    if (more) out.print('there are more: run this again')
  }
  return 0
}

/** The numbers of the oldest rows that are selected, oldest first, and whether there are others. */
export async function oldestOf<Row extends AnyRow>(
  rows: Pick<BoxStore<Row>, 'list'>,
  { states, channel, isWanted }: Selection<Row>,
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
      found.push(...page.filter(isWanted).map(({ number }) => number))
      found.sort((a, b) => b - a)
      more ||= found.length > REPLAY_MAX
      found.splice(0, found.length - REPLAY_MAX)
      before = page.at(-1)?.number
      if (page.length < PAGE_ROWS) break
    }
  }
  return { numbers: found.reverse(), more }
}

const counted = ({ replayed: { one, many } }: Pick<Box<never>, 'replayed'>, count: number): string =>
  count === 1 ? `1 ${one}` : `${count} ${many}`
