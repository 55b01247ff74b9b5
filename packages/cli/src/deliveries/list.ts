/** `sluice inbox list` and its kin: a page of rows, newest first. */
import { AppError, type DeliveryFilter } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'
import type { Box } from './box.ts'

const LIMIT = 50
const LIMIT_MAX = 500

/** The rows the options ask for; with `states`, those that are in one of them. */
export const list = <Row extends { readonly number: number; readonly state: string }>(
  box: Box<Row>,
  context: CliContext,
  states?: readonly string[],
): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json } = context
    const filter = filterOf(box, context)
    // One more than is shown tells whether there are others.
    const oneMore = { ...filter, limit: filter.limit + 1 }
    const pages = await Promise.all(
      states ? states.map((state) => box.of(store).list({ ...oneMore, state })) : [box.of(store).list(oneMore)],
    )
    const found = pages.flat().toSorted((a, b) => b.number - a.number)
    const rows = found.slice(0, filter.limit)
    if (json) out.json(rows.map(box.shown))
    else if (rows.length === 0) out.print(`nothing ${states ? `${states.join(' or ')} ` : ''}in the ${box.name}`)
    else out.table(box.headings, rows.map(box.cells))
    if (found.length > rows.length) out.warn(`older ones: add --before ${rows.at(-1)?.number}`)
    return 0
  })

function filterOf({ name, states }: Pick<Box<never>, 'name' | 'states'>, { options }: CliContext): DeliveryFilter {
  const { limit, before, state, channel } = options
  if (typeof state === 'string' && !states.includes(state))
    throw new AppError('invalid_request', `--state wants one of ${states.join(', ')} for the ${name}, not '${state}'`)
  return {
    limit: typeof limit === 'string' ? wholeNumber('--limit', limit, 1, LIMIT_MAX) : LIMIT,
    ...(typeof before === 'string' && { before: wholeNumber('--before', before, 1) }),
    ...(typeof state === 'string' && { state }),
    ...(typeof channel === 'string' && { channel }),
  }
}
