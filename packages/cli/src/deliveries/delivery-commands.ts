/** `list`, `dead`, `replay` and `discard`, which `sluice inbox` and `sluice outbox` have in common. */
import { AppError } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import { readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { limitOption, PAGE_MAX, textOption, wholeNumber } from '../option-values.ts'
import { parseSince } from './parse-since.ts'

/** The differences between the commands of the inbox and the commands of the outbox. */
export interface DeliveryBox<Row> {
  readonly name: 'inbox' | 'outbox'
  readonly states: readonly string[]
  /** The states that only an operator changes, with a replay. */
  readonly replayableStates: readonly string[]
  /** The outcome of a replay, after the number of replayed entries. */
  readonly replayed: { readonly one: string; readonly many: string }
  readonly headings: readonly string[]
  /** The member of the answer that holds the entries. */
  readonly member: 'messages' | 'replies'
  /** The texts of a row of the table. */
  cells(row: Row): readonly string[]
}

const FILTERS = ['dead', 'state', 'channel', 'since'] as const
/** The options that are words to search for. */
const SEARCHED = ['sender', 'to', 'text'] as const

const pathOf = ({ name }: Pick<DeliveryBox<never>, 'name'>, ...segments: readonly (string | number)[]): string =>
  apiPath('/api/deliveries', name, ...segments)

/** Prints the entries that the options select, newest first; with `states`, only entries in one of these states. */
export const listDeliveries = <Row extends { readonly number: number }>(
  box: DeliveryBox<Row>,
  context: CliContext,
  states: readonly string[] = stateOption(box, context),
): Promise<number> => {
  const { out, json, options } = context
  const limit = limitOption(context)
  const first = typeof options.before === 'string' ? wholeNumber('--before', options.before, 1) : undefined
  const search = Object.fromEntries(SEARCHED.map((name) => [name, textOption(context, name)]))
  const isSearch = Object.values(search).some((words) => words !== undefined)
  const filter = { ...search, channel: textOption(context, 'channel'), state: states.length > 0 ? states.join(',') : undefined }
  return withApi(context, async (api) => {
    const { items, next } = await readPages<Row, number>(limit, PAGE_MAX, async (size, before = first) => {
      const page = await api.get<Record<string, Row[]> & { next: number | null }>(pathOf(box), { ...filter, limit: size, before })
      return { items: page[box.member] ?? [], next: page.next }
    })
    if (json) out.json(items)
    else if (items.length === 0)
      out.print(`nothing ${states.length > 0 ? `${states.join(' or ')} ` : ''}${isSearch ? 'found ' : ''}in the ${box.name}`)
    else out.table(box.headings, items.map(box.cells))
    if (next !== null) out.warn(`${isSearch && items.length < limit ? 'not searched yet: ' : ''}older ones: add --before ${next}`)
    return 0
  })
}

function stateOption({ name, states }: Pick<DeliveryBox<never>, 'name' | 'states'>, context: CliContext): readonly string[] {
  const given = textOption(context, 'state')?.split(',') ?? []
  const unknown = given.find((one) => !states.includes(one))
  if (unknown === undefined) return given
  throw new AppError('invalid_request', `--state wants one of ${states.join(', ')} for the ${name}, not '${unknown}'`)
}

/** Replays entries by number, or every entry that a filter selects. Without a daemon, the next daemon works on them. */
export const replayDeliveries = <Row>(box: DeliveryBox<Row>, context: CliContext): Promise<number> => {
  const { args, options } = context
  const isFiltered = FILTERS.some((name) => options[name] !== undefined)
  if (isFiltered && args.length > 0) throw new AppError('invalid_request', 'name numbers or a filter such as --state, not both')
  if (isFiltered) {
    const selection = parseSelection(box, context)
    return withApi(context, (api) => replaySelected(box, context, api, selection))
  }
  if (args.length === 0)
    throw new AppError('invalid_request', `name what to replay by number or by --state; 'sluice ${box.name} list' shows the numbers`)
  return changeEach(box, context, { action: 'replay', done: 'replayed', outcome: (count) => outcome(box, count) })
}

/** Marks dead entries as discarded: they will not be replayed. */
export const discardDeliveries = <Row>(box: DeliveryBox<Row>, context: CliContext): Promise<number> =>
  changeEach(box, context, { action: 'discard', done: 'discarded', outcome: (count) => `${count} discarded` })

/** The body of a replay by filter. */
interface Selection {
  readonly state: readonly string[]
  readonly channel: string | undefined
  readonly since: string | undefined
}

function parseSelection<Row>({ name, replayableStates }: DeliveryBox<Row>, context: CliContext): Selection {
  const [state, since, channel] = (['state', 'since', 'channel'] as const).map((option) => textOption(context, option))
  const isDead = context.options.dead === true
  if (!isDead && state === undefined)
    throw new AppError('invalid_request', `--channel and --since go with --state (${replayableStates.join(' or ')})`)
  const states = [...new Set([...(isDead ? ['dead'] : []), ...(state?.split(',') ?? [])])]
  const unknown = states.find((one) => !replayableStates.includes(one))
  if (unknown !== undefined)
    throw new AppError('invalid_request', `--state wants ${replayableStates.join(' or ')} for a replay of the ${name}, not '${unknown}'`)
  return { state: states, channel, since: since && new Date(parseSince(since)).toISOString() }
}

interface Change {
  readonly action: 'replay' | 'discard'
  /** The member of the printed JSON that lists the numbers. */
  readonly done: string
  outcome(count: number): string
}

/** Changes each named entry that can be changed, then throws the first error; the others are printed. */
function changeEach<Row>(box: DeliveryBox<Row>, context: CliContext, { action, done, outcome: tell }: Change): Promise<number> {
  const { args, out, json } = context
  const numbers = new Set(args.map((arg) => wholeNumber(`sluice ${box.name} ${action}`, arg, 1)))
  return withApi(context, async (api) => {
    const changed: number[] = []
    const errors: AppError[] = []
    for (const number of numbers) {
      try {
        await api.post(pathOf(box, number, action))
        changed.push(number)
      } catch (error) {
        if (!(error instanceof AppError) || (error.code !== 'not_found' && error.code !== 'conflict')) throw error
        errors.push(error)
      }
    }
    const [first, ...more] = errors
    if (changed.length > 0) {
      if (json) out.json({ [done]: changed })
      else out.print(tell(changed.length))
    }
    for (const { message } of more) out.warn(`sluice: ${message}`)
    if (first) throw first
    return 0
  })
}

async function replaySelected<Row>(box: DeliveryBox<Row>, { out, json }: CliContext, api: Api, selection: Selection): Promise<number> {
  const result = await api.post<{ replayed: number[]; too_old: number[]; more: boolean }>(pathOf(box, 'replay'), selection)
  if (json) out.json(result)
  else {
    out.print(outcome(box, result.replayed.length))
    if (result.too_old.length > 0)
      out.print(`${result.too_old.length} stay ${selection.state.join(' or ')}: their content is no longer kept`)
    if (result.more) out.print('there are more: run this again')
  }
  return 0
}

const outcome = <Row>({ replayed: { one, many } }: DeliveryBox<Row>, count: number): string =>
  count === 1 ? `1 ${one}` : `${count} ${many}`
