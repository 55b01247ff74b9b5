/** `GET /api/overview`: what the first page of the dashboard shows, in one answer, so that it opens quickly on a slow network. */
import { answerOf, defineRoute, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'

const PENDING_APPROVALS = '/api/approvals?state=pending&limit=20'
/** The days of the chart. */
const COSTS = '/api/costs?by=day'

export const overviewRoute = defineRoute({
  method: 'GET',
  path: '/api/overview',
  summary: 'The answers of `/api/status`, `/api/health`, `/api/costs`, and `/api/approvals` for those that wait, together',
  auth: 'operator',
  query: v.object({ offset_minutes: v.exactOptional(v.pipe(v.string(), v.description('As for `/api/costs`'))) }),
  answers: {
    200: {
      description: 'Each member is the answer of the route of that name',
      schema: v.object({
        status: answerOf('/api/status'),
        health: answerOf('/api/health'),
        approvals: answerOf('/api/approvals'),
        costs: answerOf('/api/costs'),
      }),
    },
  },
  async handle(request: RouteRequest<unknown, { readonly offset_minutes?: string }>) {
    const { offset_minutes: offset } = request.query
    const get = (path: string) => request.api({ method: 'GET', path, signal: request.signal })
    const zone = offset === undefined ? '' : `&${new URLSearchParams({ offset_minutes: offset })}`
    const [status, health, approvals, costs] = await Promise.all([
      get('/api/status'),
      get('/api/health'),
      get(PENDING_APPROVALS),
      get(`${COSTS}${zone}`),
    ])
    return { status, health, approvals, costs }
  },
})
