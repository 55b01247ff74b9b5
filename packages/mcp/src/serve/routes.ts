/** The route `/mcp`, at which other agents reach this one. */
import { defineRoute, type Logger, type Route } from '@sluice/sdk'
import * as v from 'valibot'

/** The largest message of a turn, and the JSON around it. */
const BODY_BYTES_MAX = 1_048_576 + 4096

export const serveRoutes = (log: Logger): Route[] => [
  defineRoute({
    method: 'POST',
    path: '/mcp',
    summary: 'One request of the Model Context Protocol (streamable HTTP, without sessions)',
    auth: 'client',
    bodyBytesMax: BODY_BYTES_MAX,
    body: v.pipe(v.unknown(), v.description('A JSON-RPC message')),
    answers: { 200: { description: 'The answer, as JSON or as server-sent events' }, 202: { description: 'A notification was taken' } },
    async handle(request) {
      const { handleRequest } = await import('./handle-request.ts')
      return handleRequest(request, log)
    },
  }),
]
