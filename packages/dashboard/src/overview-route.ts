/** `GET /api/overview`: what the first page of the dashboard shows, in one answer, so that it opens quickly on a slow network. */
import { defineRoute, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'

const PENDING_APPROVALS = '/api/approvals?state=pending&limit=20'

const json = v.looseObject({})

export const overviewRoute = defineRoute({
  method: 'GET',
  path: '/api/overview',
  summary: 'The answers of `/api/status`, `/api/health`, and `/api/approvals` for those that wait, together',
  auth: 'operator',
  answers: {
    200: {
      description: 'Each member is the answer of the route of that name',
      schema: v.object({ status: json, health: json, approvals: json }),
    },
  },
  async handle(request: RouteRequest) {
    const get = (path: string) => request.api({ method: 'GET', path, signal: request.signal })
    const [status, health, approvals] = await Promise.all([get('/api/status'), get('/api/health'), get(PENDING_APPROVALS)])
    return { status, health, approvals }
  },
})
