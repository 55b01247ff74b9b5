/** `/api/turns`: the state of a turn, and its abort. */

import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, finishReasonSchema, type ListedTurn, type Route, type RouteRequest, type TurnRow } from '@sluice/sdk'
import * as v from 'valibot'
import { bareSession, ownerOf } from '../auth/identity.ts'
import { cursorOf, filterText, pageOf, readCursor, wholeText } from './query.ts'

const PAGE_MAX = 200

const turnSchema = v.object({
  turn_id: v.string(),
  agent: v.string(),
  status: v.picklist(['queued', 'running', 'done', 'failed', 'aborted']),
  source: v.string(),
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

const shownState = (device: string | null, turn: Omit<ListedTurn, 'endedAtMs'> & Pick<TurnRow, 'endedAtMs'>) => ({
  turn_id: turn.id,
  agent: turn.agent,
  status: turn.status,
  source: turn.source,
  session_id: turn.sessionId === null ? null : (bareSession(device, turn.sessionId) ?? turn.sessionId),
  model: turn.model,
  finish_reason: turn.finishReason,
  error: turn.error,
  input_tokens: turn.inputTokens,
  output_tokens: turn.outputTokens,
  cost_usd: turn.costUsd,
  attempts: turn.attempts,
  created_at: isoTime(turn.createdAtMs),
  ended_at: isoTime(turn.endedAtMs),
})

const shown = (device: string | null, turn: TurnRow) => ({ ...shownState(device, turn), response: turn.response })

const listedSchema = v.object({
  ...v.omit(turnSchema, ['response']).entries,
  ended_at: v.string(),
})

/** The end of a turn in milliseconds since 1970, and its id. */
const cursorKey = v.tuple([v.number(), v.string()])

const listRoute = ({ store: { turns } }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/turns',
    summary: 'The ended turns of this device, the latest end first. An operator sees all turns',
    auth: 'client',
    query: v.object({
      limit: wholeText(1, PAGE_MAX, 50),
      cursor: filterText,
      status: v.exactOptional(v.picklist(['done', 'failed', 'aborted'])),
      agent: filterText,
      session: v.exactOptional(v.pipe(v.string(), v.minLength(1), v.description('The stored id of a session, for operators'))),
    }),
    answers: {
      200: {
        description: 'A page. Pass `next` as `cursor` to get the next page; null is the end',
        schema: v.object({ turns: v.array(listedSchema), next: v.nullable(v.string()) }),
      },
    },
    async handle({ device, role, query: { limit, cursor, session, ...filter } }) {
      const place = cursor === undefined ? undefined : readCursor(cursor, cursorKey)
      const rows = await turns.list({
        ...filter,
        limit: limit + 1,
        ...(role !== 'operator' && { owner: ownerOf(device) }),
        ...(session !== undefined && { sessionId: session }),
        ...(place && { before: { endedAtMs: place[0], id: place[1] } }),
      })
      const { page, next } = pageOf(rows, limit, ({ endedAtMs, id }) => cursorOf([endedAtMs, id]))
      return { turns: page.map((turn) => shownState(device, turn)), next }
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
      summary: 'The state of a turn',
      auth: 'client',
      answers: { 200: { description: 'The turn', schema: turnSchema } },
      async handle({ device, role, params: { id = '' } }) {
        const turn = await turns.get(id)
        if (!turn || isHidden({ device, role }, turn)) throw unknownTurn()
        return shown(device, turn)
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
