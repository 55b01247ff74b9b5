/** Reads what was given up from the store, as the events that reported it. */
import { type SluiceEvent, SOP_ENDED, type Store } from '@sluice/sdk'

/** An end without success, and its time. */
export interface GivenUp {
  readonly atMs: number
  readonly event: SluiceEvent
}

const ROWS_MAX = 100
const RUN_STATES = SOP_ENDED.filter((status) => status === 'failed' || status === 'expired')

/** Resolves to the newest dead messages and replies, and to the newest failed and expired runs, that ended within the time. Latest first. */
export async function givenUp(
  { inbox, outbox, sops }: Pick<Store, 'inbox' | 'outbox' | 'sops'>,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<GivenUp[]> {
  const dead = { state: 'dead', limit: ROWS_MAX }
  const [messages, replies, ...runs] = await Promise.all([
    inbox.list(dead),
    outbox.list(dead),
    ...RUN_STATES.map((status) => sops.runs({ status, limit: ROWS_MAX })),
  ])
  const delivery = (direction: 'inbound' | 'outbound', rows: typeof messages | typeof replies): GivenUp[] =>
    rows.map(({ number, channel, error, endedAtMs }) => ({
      atMs: endedAtMs ?? 0,
      event: { type: 'delivery', direction, channel, number, state: 'dead', error },
    }))
  const ended = runs.flat().map(
    ({ id, sop, status, step, steps, reason, endedAtMs }): GivenUp => ({
      atMs: endedAtMs ?? 0,
      event: { type: 'sop_run', run_id: id, sop, status, step, steps: steps.length, reason },
    }),
  )
  return [...delivery('inbound', messages), ...delivery('outbound', replies), ...ended]
    .filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
    .toSorted((a, b) => b.atMs - a.atMs)
}
