/** `sluice inbox replay` and `sluice outbox replay`: by number, or all dead letters. A running daemon notices within a second. */
import { AppError, type Store } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'
import type { Box } from './box.ts'

/** Dead letters replayed by one command, oldest first. */
const REPLAY_MAX = 10_000
const PAGE_ROWS = 500
/** Replays that may share a commit. */
const BATCH_ROWS = 100

type AnyRow = { readonly number: number; readonly state: string }

export const replay = <Row extends AnyRow>(box: Box<Row>, context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { args, options } = context
    if (options.dead === true && args.length > 0) throw new AppError('invalid_request', 'name numbers or --dead, not both')
    if (options.dead === true) return replayDead(box, context, store)
    if (options.channel !== undefined) throw new AppError('invalid_request', '--channel goes with --dead')
    if (args.length === 0) throw new AppError('invalid_request', `name what to replay by its number; 'sluice ${box.name} list' shows them`)
    const numbers = args.map((arg) => wholeNumber(`sluice ${box.name} replay`, arg, 1))
    return replayNumbers(box, context, store, numbers)
  })

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

async function replayDead<Row extends AnyRow>(box: Box<Row>, { out, json, options }: CliContext, store: Store): Promise<number> {
  const rows = box.of(store)
  const { numbers, more } = await oldestDead(rows, typeof options.channel === 'string' ? options.channel : undefined)
  const replayed: number[] = []
  const tooOld: number[] = []
  for (let at = 0; at < numbers.length; at += BATCH_ROWS) {
    const batch = numbers.slice(at, at + BATCH_ROWS)
    const done = await Promise.all(batch.map((number) => rows.replay(number)))
    for (const [index, number] of batch.entries()) {
      // A later part of a reply is replayed with the first one, and then not dead any more.
      const isReplayed = done[index] || (await rows.get(number))?.state !== 'dead'
      const list = isReplayed ? replayed : tooOld
      list.push(number)
    }
  }
  if (json) out.json({ replayed, too_old: tooOld, more })
  else {
    out.print(counted(box, replayed.length))
    if (tooOld.length > 0) out.print(`${tooOld.length} stay dead: their content is no longer kept`)
    if (more) out.print('there are more: run this again')
  }
  return 0
}

/** The numbers of the oldest dead rows, oldest first, and whether there are others. */
export async function oldestDead(
  rows: ReturnType<Box<AnyRow>['of']>,
  channel: string | undefined,
): Promise<{ readonly numbers: readonly number[]; readonly more: boolean }> {
  const numbers: number[] = []
  let more = false
  for (let before: number | undefined; ; before = numbers.at(-1)) {
    const page = await rows.list({
      limit: PAGE_ROWS,
      state: 'dead',
      ...(before !== undefined && { before }),
      ...(channel !== undefined && { channel }),
    })
    numbers.push(...page.map(({ number }) => number))
    more ||= numbers.length > REPLAY_MAX
    numbers.splice(0, numbers.length - REPLAY_MAX)
    if (page.length < PAGE_ROWS) return { numbers: numbers.reverse(), more }
  }
}

const counted = ({ replayed: { one, many } }: Pick<Box<never>, 'replayed'>, count: number): string =>
  count === 1 ? `1 ${one}` : `${count} ${many}`
