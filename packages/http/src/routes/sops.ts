/** `/api/sops`: the procedures, their runs and the audit log. Operators start and cancel runs by hand. */

import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, formatTraceContext, type Route, type Sops } from '@sluice/sdk'
import { auditSchema, RUN_STATUSES, runSchema, shownAudit, shownRun, shownSop, sopSchema } from '@sluice/sop/shown'
import * as v from 'valibot'
import { personOf } from '../identity.ts'
import { filterText, flag, wholeText } from './query.ts'

const PAGE_MAX = 500
const TEXT_MAX = 2000

const unknownRun = (): AppError => new AppError('not_found', 'There is no such run')

export function sopRoutes(runtime: Runtime): Route[] {
  const engine = (): Sops => {
    const sops = runtime.sops()
    if (!sops) throw new AppError('unavailable', 'Procedures are not running here')
    return sops
  }
  return [...procedureRoutes(runtime, engine), ...runRoutes(runtime, engine), auditRoute(runtime)]
}

const procedureRoutes = ({ clock }: Runtime, engine: () => Sops): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/sops',
    summary: 'The loaded procedures',
    auth: 'operator',
    answers: { 200: { description: 'By name', schema: v.object({ sops: v.array(sopSchema) }) } },
    handle: () => ({ sops: engine().list().map(shownSop) }),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/sops/:name/runs',
    summary: 'Start a procedure by hand, whatever its triggers are',
    auth: 'operator',
    body: v.object({ payload: v.optional(v.pipe(v.unknown(), v.description('Any JSON value; the input of the first step'))) }),
    answers: { 200: { description: 'The run has started', schema: v.object({ run_id: v.string() }) } },
    async handle({ device, params: { name = '' }, body: { payload }, trace }) {
      const by = personOf(device)
      const runId = await engine().run(name, {
        payload: payload === undefined ? null : JSON.stringify(payload),
        atMs: clock.nowMs(),
        by,
        trace: formatTraceContext(trace),
      })
      return { run_id: runId }
    },
  }),
]

const runRoutes = ({ store: { sops } }: Runtime, engine: () => Sops): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/sops/runs',
    summary: 'The runs of procedures, newest first',
    auth: 'operator',
    query: v.object({
      limit: wholeText(1, PAGE_MAX, 50),
      before: filterText,
      sop: filterText,
      active: v.exactOptional(flag),
      status: v.exactOptional(v.picklist(RUN_STATUSES)),
    }),
    answers: {
      200: {
        description: 'A page. Pass the last `run_id` as `before` to get the next page',
        schema: v.object({ runs: v.array(runSchema) }),
      },
    },
    async handle({ query: { active, ...filter } }) {
      const runs = await sops.runs({ ...filter, ...(active !== undefined && { active: active === 'true' }) })
      return { runs: runs.map(shownRun) }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/sops/runs/:id',
    summary: 'One run with its steps',
    auth: 'operator',
    answers: { 200: { description: 'The run', schema: runSchema } },
    async handle({ params: { id = '' } }) {
      const run = await sops.get(id)
      if (!run) throw unknownRun()
      return shownRun(run)
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/sops/runs/:id/cancel',
    summary: 'Cancel a run',
    auth: 'operator',
    body: v.object({ reason: v.optional(v.pipe(v.string(), v.maxLength(TEXT_MAX)), 'cancelled by hand') }),
    answers: { 200: { description: 'The cancelled run', schema: runSchema } },
    handle: async ({ device, params: { id = '' }, body: { reason } }) => shownRun(await engine().cancel(id, personOf(device), reason)),
  }),
]

const auditRoute = ({ store: { sops } }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sops/audit',
    summary: 'The audit log in order: each transition with its actor and reason, chained to the record before it',
    auth: 'operator',
    query: v.object({
      limit: wholeText(1, PAGE_MAX, 100),
      after: wholeText(0, Number.MAX_SAFE_INTEGER, 0),
      run: filterText,
      sop: filterText,
    }),
    answers: {
      200: {
        description: 'A page. Pass the last `number` as `after` to get the next page',
        schema: v.object({ records: v.array(auditSchema) }),
      },
    },
    handle: async ({ query }) => ({ records: (await sops.audit(query)).map(shownAudit) }),
  })
