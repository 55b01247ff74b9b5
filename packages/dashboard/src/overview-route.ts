/** `GET /api/overview`: the data of the dashboard's first page in one answer, so that it opens quickly on a slow network. */
import { answerOf, defineRoute } from '@sluice/sdk'
import * as v from 'valibot'

const PENDING_APPROVALS = '/api/approvals?state=pending&limit=20'
/** The newest notices to operators. */
const NOTICES = '/api/notices?limit=10'

export const overviewRoute = defineRoute({
  method: 'GET',
  path: '/api/overview',
  summary:
    'The answers of `/api/status`, `/api/health`, `/api/history` for a day, `/api/notices`, and `/api/approvals` for those that wait, together',
  auth: 'operator',
  answers: {
    200: {
      description: 'Each member is the answer of the route of that name',
      schema: v.object({
        status: answerOf('/api/status'),
        health: answerOf('/api/health'),
        approvals: answerOf('/api/approvals'),
        history: answerOf('/api/history'),
        notices: answerOf('/api/notices'),
      }),
    },
  },
  async handle(request) {
    const get = (path: string) => request.api({ method: 'GET', path, signal: request.signal })
    const [status, health, approvals, history, notices] = await Promise.all(
      ['/api/status', '/api/health', PENDING_APPROVALS, '/api/history', NOTICES].map(get),
    )
    return { status, health, approvals, history, notices }
  },
})
