/** `/api/logs`: the last lines of the log, and new lines as they come. No line has a secret. */
import type { RecentLog, Runtime } from '@sluice/runtime'
import { defineRoute, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { jsonLines } from '../streams/json-lines.ts'
import { wholeText } from './query.ts'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
const LINES_MAX = 1000

const lineSchema = v.looseObject({
  number: v.pipe(v.number(), v.description('Grows by one within a run of the daemon')),
  time: v.string(),
  level: v.picklist(LEVELS),
  component: v.optional(v.string()),
  message: v.string(),
})

const level = v.optional(v.pipe(v.picklist(LEVELS), v.description('Only lines of this level and above')), 'debug')
const after = v.pipe(wholeText(0, 1e15, 0), v.description('Only lines after the one with this number'))

type Line = ReturnType<RecentLog['after']>[number]

const shown = ({ number, json }: Line) => ({ number, ...(JSON.parse(json) as object) })
const isAtLeast = (least: (typeof LEVELS)[number]) => (line: Line) => LEVELS.indexOf(line.level) >= LEVELS.indexOf(least)

export const logRoutes = ({ recentLog }: Runtime): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/logs',
    summary: 'The last lines of the log that are kept in memory, oldest first; `[log] level` decides which are written',
    auth: 'operator',
    query: v.object({ level, after, limit: wholeText(1, LINES_MAX, 200) }),
    answers: {
      200: {
        description: 'The newest `limit` lines',
        schema: v.object({
          run: v.pipe(v.string(), v.description('The run of the daemon, which numbers the lines')),
          lines: v.array(lineSchema),
        }),
      },
    },
    handle: ({ query }) => ({
      run: recentLog.run,
      lines: recentLog.after(query.after).filter(isAtLeast(query.level)).slice(-query.limit).map(shown),
    }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/logs/follow',
    summary: 'Lines of the log as they are written, one JSON object per line',
    auth: 'operator',
    query: v.object({ level, after: v.exactOptional(after) }),
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'The kept lines after `after`, if it is given, and each new one', schema: lineSchema } },
    handle: (request) =>
      jsonLines<ReturnType<typeof shown>>(request.signal, async (send, ended) => {
        const { query } = request
        const isWanted = isAtLeast(query.level)
        const show = (line: Line): void => void (isWanted(line) && send(shown(line)))
        const stop = recentLog.listen(show)
        if (query.after !== undefined) for (const line of recentLog.after(query.after)) show(line)
        const over = Promise.withResolvers<void>()
        const forget = request.onRevoked(over.resolve)
        ended.addEventListener('abort', () => over.resolve(), { once: true })
        if (!ended.aborted) await over.promise
        forget()
        stop()
      }),
  }),
]
