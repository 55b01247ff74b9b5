/** `/api/turns`: the turns that run and have ended, the timeline of one, and its abort. */

import type { RunningTurn } from '@sluice/agent'
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import {
  AppError,
  defineRoute,
  finishReasonSchema,
  type ListedTurn,
  parseChatSession,
  type Route,
  type RouteRequest,
  type TurnRow,
} from '@sluice/sdk'
import * as v from 'valibot'
import { bareSession, ownerOf, storedSession } from '../auth/identity.ts'
import { cursorOf, filterText, pageOf, readCursor, wholeText } from './query.ts'
import { contains, searchPage } from './search-page.ts'
import { timelineOf, timelineSchema } from './turn-timeline.ts'

const PAGE_MAX = 200
/** The rows that one page of a search looks at, which bounds its time. */
const ROWS_LOOKED_AT_MAX = 2000
const STATES = ['queued', 'running', 'done', 'failed', 'aborted'] as const

const turnSchema = v.object({
  turn_id: v.string(),
  agent: v.string(),
  status: v.picklist(STATES),
  source: v.string(),
  sender: v.pipe(v.nullable(v.string()), v.description('Who wrote the message: the sender on a channel, or the name of a device')),
  session_id: v.nullable(v.string()),
  response: v.nullable(v.string()),
  model: v.nullable(v.string()),
  finish_reason: v.pipe(v.nullable(finishReasonSchema), v.description('`stop`: the answer is complete; null without an answer')),
  error: v.nullable(v.object({ code: v.string(), message: v.string() })),
  input_tokens: v.number(),
  output_tokens: v.number(),
  cost_usd: v.number(),
  attempts: v.number(),
  created_at: v.string(),
  ended_at: v.nullable(v.string()),
})

const unknownTurn = (): AppError => new AppError('not_found', 'There is no such turn')

/** A client sees only its own turns, an operator all of them. */
const isHidden = ({ role, device }: Pick<RouteRequest, 'role' | 'device'>, { owner }: TurnRow): boolean =>
  role !== 'operator' && owner !== ownerOf(device)

/** Returns the name of the person or device behind a turn; null for one of the daemon itself. */
type SenderOf = (turn: Pick<ListedTurn, 'sessionId' | 'owner' | 'sender'>) => string | null

/** The session of a shared room names no sender, but the message does. */
async function senders({ store: { devices } }: Runtime): Promise<SenderOf> {
  const names = new Map((await devices.list()).map(({ id, name }) => [id, name]))
  return ({ sessionId, owner, sender }) =>
    (sessionId === null ? undefined : parseChatSession(sessionId)?.sender) ?? sender ?? (owner === null ? null : (names.get(owner) ?? null))
}

const withSender = async <T extends TurnRow>({ store: { inbox } }: Runtime, turn: T): Promise<T & Pick<ListedTurn, 'sender'>> => ({
  ...turn,
  sender: (turn.inbox === null ? undefined : await inbox.get(turn.inbox))?.sender ?? null,
})

const shownState = (device: string | null, senderOf: SenderOf, turn: Omit<ListedTurn, 'endedAtMs'> & Pick<TurnRow, 'endedAtMs'>) => ({
  turn_id: turn.id,
  agent: turn.agent,
  status: turn.status,
  source: turn.source,
  sender: senderOf(turn),
  session_id: turn.sessionId === null ? null : (bareSession(device, turn.sessionId) ?? turn.sessionId),
  model: turn.model,
  finish_reason: turn.finishReason,
  error: turn.error && { code: turn.error.code, message: turn.error.message },
  input_tokens: turn.inputTokens,
  output_tokens: turn.outputTokens,
  cost_usd: turn.costUsd,
  attempts: turn.attempts,
  created_at: isoTime(turn.createdAtMs),
  ended_at: isoTime(turn.endedAtMs),
})

const { response: _, ended_at: __, ...stateEntries } = turnSchema.entries
const listedSchema = v.object({ ...stateEntries, ended_at: v.string() })
const runningSchema = v.object({
  ...stateEntries,
  ended_at: v.null(),
  waits_for_person: v.pipe(v.boolean(), v.description('Whether a question about one of its tool calls is open')),
})
const pageSchema = v.object({
  running: v.pipe(v.array(runningSchema), v.description('On the first page: the turns that wait or run on this node, the newest first')),
  turns: v.array(listedSchema),
  next: v.nullable(v.string()),
})
const oneSchema = v.object({
  ...turnSchema.entries,
  input: v.pipe(v.nullable(v.string()), v.description('The message; null for a turn of another device')),
  timeline: timelineSchema,
})

/** A turn, as the API lists it. */
export type ListedTurnAnswer = v.InferOutput<typeof listedSchema>
/** The answer of `GET /api/turns`. */
export type TurnsPage = v.InferOutput<typeof pageSchema>
/** The answer of `GET /api/turns/:id`. */
export type TurnAnswer = v.InferOutput<typeof oneSchema>

/** The end of a turn in milliseconds since 1970, and its id. */
const cursorKey = v.tuple([v.number(), v.string()])

const words = (of: string) =>
  v.exactOptional(v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description(`Only turns with these words in ${of}, in any case`)))

const querySchema = v.object({
  limit: wholeText(1, PAGE_MAX, 50),
  cursor: filterText,
  status: v.exactOptional(v.picklist(STATES)),
  agent: filterText,
  session: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.description('A session: its name or, for operators, its stored id'))),
  since: v.exactOptional(v.pipe(v.string(), v.isoTimestamp(), v.description('Only turns that ended at this time or later'))),
  channel: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.description('The channel or other source, such as `webhook` or `sop`'))),
  sender: words('their sender'),
  error: words('their error'),
})

const listRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/turns',
    summary: 'The turns of this device that run or have ended, the latest end first. An operator sees all turns',
    auth: 'client',
    query: querySchema,
    answers: {
      200: {
        description:
          'A page. Pass `next` as `cursor` to get the next page; null is the end. A page of a search by channel, sender or error may be short, or empty, although there is a next one',
        schema: pageSchema,
      },
    },
    async handle({ device, role, query: { limit, cursor, session, since, channel, sender, error, status, agent } }) {
      const { store, agent: turns } = runtime
      const senderOf = await senders(runtime)
      const [isBy, hasError] = [contains(sender), contains(error)]
      const isFound = (turn: Parameters<SenderOf>[0] & Pick<TurnRow, 'source' | 'error'>): boolean =>
        (channel === undefined || turn.source === channel) &&
        isBy(senderOf(turn)) &&
        hasError(turn.error && `${turn.error.code}: ${turn.error.message}`)
      const sessionId = session === undefined || session.includes('/') || session.includes(':') ? session : storedSession(device, session)
      const owner = role === 'operator' ? undefined : ownerOf(device)
      const place = cursor === undefined ? undefined : readCursor(cursor, cursorKey)
      const before = place && { endedAtMs: place[0], id: place[1] }
      const list = (page: { readonly limit: number; readonly before?: { readonly endedAtMs: number; readonly id: string } }) =>
        store.turns.list({
          ...page,
          ...(status !== undefined && { status }),
          ...(agent !== undefined && { agent }),
          ...(owner !== undefined && { owner }),
          ...(sessionId !== undefined && { sessionId }),
          ...(since !== undefined && { sinceMs: Date.parse(since) }),
        })
      const placeOf = ({ endedAtMs, id }: ListedTurn) => ({ endedAtMs, id })
      const cursorAt = ({ endedAtMs, id }: ReturnType<typeof placeOf>) => cursorOf([endedAtMs, id])
      const find = async () => {
        if ((channel ?? sender ?? error) === undefined)
          return pageOf(await list({ limit: limit + 1, ...(before && { before }) }), limit, cursorAt)
        const { page, next } = await searchPage<ListedTurn, ReturnType<typeof placeOf>>({
          limit,
          before,
          lookedAtMax: ROWS_LOOKED_AT_MAX,
          list,
          placeOf,
          isFound,
        })
        return { page, next: next && cursorAt(next) }
      }
      const isListed = (turn: RunningTurn & Pick<ListedTurn, 'sender'>): boolean =>
        (owner === undefined || turn.owner === owner) &&
        (status === undefined || turn.status === status) &&
        (agent === undefined || turn.agent === agent) &&
        (sessionId === undefined || turn.sessionId === sessionId) &&
        isFound(turn)
      const { page, next } = await find()
      const live = cursor === undefined ? await Promise.all(turns.live().map((turn) => withSender(runtime, turn))) : []
      const running = live.filter(isListed).slice(0, PAGE_MAX)
      return {
        running: running.map((turn) => ({
          ...shownState(device, senderOf, turn),
          ended_at: null,
          waits_for_person: turn.isAsking,
        })),
        turns: page.map((turn) => ({ ...shownState(device, senderOf, turn), ended_at: isoTime(turn.endedAtMs) })),
        next,
      }
    },
  })

export function turnRoutes(runtime: Runtime): Route[] {
  const { agent, store } = runtime
  const { turns } = store
  return [
    listRoute(runtime),
    defineRoute({
      method: 'GET',
      path: '/api/turns/:id',
      summary: 'A turn and its timeline',
      auth: 'client',
      answers: { 200: { description: 'The turn', schema: oneSchema } },
      async handle({ device, role, params: { id = '' } }) {
        const turn = agent.live().find((live) => live.id === id) ?? (await turns.get(id))
        if (!turn || isHidden({ device, role }, turn)) throw unknownTurn()
        const timeline = await timelineOf(runtime, turn, role === 'operator')
        return {
          ...shownState(device, await senders(runtime), await withSender(runtime, turn)),
          response: turn.response,
          input: turn.owner === ownerOf(device) ? turn.input : null,
          timeline,
        }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/turns/:id/abort',
      summary: 'Abort a running or waiting turn',
      auth: 'client',
      answers: { 200: { description: 'The turn ends as `aborted`', schema: v.object({ aborted: v.literal(true), turn_id: v.string() }) } },
      async handle({ device, role, params: { id = '' } }) {
        // A turn that is not queued is in the store only after its end.
        const turn = await turns.get(id)
        if (turn && isHidden({ device, role }, turn)) throw unknownTurn()
        if (!(await agent.requestAbort(id, role === 'operator' ? undefined : ownerOf(device))))
          throw turn ? new AppError('conflict', 'The turn has ended') : unknownTurn()
        return { aborted: true, turn_id: id }
      },
    }),
  ]
}
