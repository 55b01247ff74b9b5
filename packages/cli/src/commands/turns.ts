/** `sluice turns`: the turns that run and have ended, and the timeline of one. */
import type { ListedTurnAnswer, TimelineEntry, TurnAnswer, TurnsPage } from '@sluice/http/answers'
import { AppError, oneLine } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { withApi } from '../api/open-api.ts'
import { type Page, readPages } from '../api/pages.ts'
import type { CliContext } from '../context.ts'
import { parseSince } from '../deliveries/parse-since.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { limitOption, PAGE_MAX, textOption } from '../option-values.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX, printFields, TEXT_CHARS_MAX } from '../print-details.ts'

/** The largest page of `GET /api/turns`. */
const PAGE = 200

type Turn = Pick<ListedTurnAnswer, 'turn_id' | 'status' | 'source' | 'sender' | 'model' | 'error' | 'created_at'> & {
  readonly ended_at: string | null
}

export const list = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json } = context
    const first = textOption(context, 'cursor')
    const since = textOption(context, 'since')
    const filter = {
      status: textOption(context, 'status'),
      channel: textOption(context, 'channel'),
      sender: textOption(context, 'sender'),
      agent: textOption(context, 'agent'),
      error: textOption(context, 'error'),
      since: since === undefined ? undefined : new Date(parseSince(since)).toISOString(),
    }
    const { running, items, next } = await readTurns(api, limitOption(context), filter, first)
    const turns: readonly Turn[] = [...running, ...items]
    if (json) out.json({ running, turns: items, next })
    else if (turns.length === 0) out.print('no turns')
    else out.table(['began', 'state', 'took', 'from', 'sender', 'model', 'error', 'id'], turns.map(cells))
    if (!json && next !== null) out.warn(`older ones: add --cursor ${next}`)
    return 0
  })

/** Reads the turns that run, if no cursor is given, and the first `limit` of those that have ended. */
async function readTurns(
  api: Api,
  limit: number,
  filter: Readonly<Record<string, string | undefined>> = {},
  first?: string,
): Promise<Page<ListedTurnAnswer, string> & Pick<TurnsPage, 'running'>> {
  let running: TurnsPage['running'] = []
  const ended = await readPages<ListedTurnAnswer, string>(limit, PAGE, async (size, cursor = first) => {
    const page = await api.get<TurnsPage>('/api/turns', { ...filter, limit: size, cursor })
    if (cursor === undefined) running = page.running
    return { items: page.turns, next: page.next }
  })
  return { ...ended, running }
}

const cells = ({ turn_id, status, source, sender, model, error, created_at, ended_at }: Turn): string[] => [
  created_at,
  status,
  ended_at === null ? '' : took(Date.parse(ended_at) - Date.parse(created_at)),
  source,
  oneLine(sender ?? '', NAME_CHARS_MAX),
  oneLine(model ?? '', NAME_CHARS_MAX),
  oneLine(error ? `${error.code}: ${error.message}` : '', TEXT_CHARS_MAX),
  turn_id,
]

export const show = (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const turn = await findTurn(api, args[0])
    if (json) {
      out.json(turn)
      return 0
    }
    printFields(out, {
      turn: turn.turn_id,
      state: turn.status,
      from: [turn.source, turn.sender].filter((part) => part !== null).join(', '),
      session: turn.session_id,
      agent: turn.agent,
      model: turn.model,
      began: turn.created_at,
      ended: turn.ended_at,
      tokens: `${turn.input_tokens} in, ${turn.output_tokens} out`,
      cost: `$${turn.cost_usd.toFixed(4)}`,
      attempts: String(turn.attempts),
      error: turn.error && `${turn.error.code}: ${turn.error.message}`,
    })
    out.print('')
    out.table(['time', 'what', 'name', 'state', 'took', 'tokens', 'detail'], turn.timeline.map(timelineCells))
    return 0
  })

/**
 * Finds a turn by its id, or by a prefix that no other turn shares that runs or is one of the 500 that ended last. Throws `not_found` without
 * such a turn, and `invalid_request` if several ids begin with the prefix.
 */
async function findTurn(api: Api, id = ''): Promise<TurnAnswer> {
  const read = (turn: string) => api.get<TurnAnswer>(apiPath('/api/turns', turn))
  try {
    return await read(id)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
  }
  const { running, items } = await readTurns(api, PAGE_MAX)
  const found = findByPrefix(id, [...running, ...items], ({ turn_id }) => turn_id, 'turns')
  if (!found) throw new AppError('not_found', `There is no turn '${id}'; 'sluice turns list' shows the ids`)
  return read(found.turn_id)
}

const timelineCells = (entry: TimelineEntry): string[] => [
  entry.at.slice(11, 23),
  entry.number === null ? entry.kind : `${entry.kind} ${entry.number}`,
  oneLine(entry.name ?? '', NAME_CHARS_MAX),
  entry.state,
  entry.took_ms === null ? '' : took(entry.took_ms),
  entry.input_tokens === null ? '' : `${entry.input_tokens} + ${entry.output_tokens ?? 0}`,
  oneLine(entry.error ?? entry.finish_reason ?? entry.by ?? '', ERROR_CHARS_MAX),
]

const took = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`)
