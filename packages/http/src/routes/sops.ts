/** `/api/sops`: the procedures, their runs and the audit log. A client starts procedures that are open to it, and sees the runs of these. */

import type { Runtime } from '@sluice/runtime'
import {
  AppError,
  defineRoute,
  formatTraceContext,
  maySeeRun,
  mayStartByName,
  type Route,
  type SopRun,
  type Sops,
  type Standing,
} from '@sluice/sdk'
import { sopNamed } from '@sluice/sop/procedure-files'
import { auditSchema, RUN_STATUSES, runSchema, shownAudit, shownRun, shownSop, sopSchema } from '@sluice/sop/shown'
import * as v from 'valibot'
import { standingOf } from '../auth/identity.ts'
import { filterText, flag, pageOf, wholeText } from './query.ts'
import { sopFileRoutes } from './sop-files.ts'

const PAGE_MAX = 500
const TEXT_MAX = 2000
const PAYLOAD_BYTES_MAX = 64 * 1024
/** A payload may have six times as many bytes as JSON text: each character of it may be escaped. */
const START_BYTES_MAX = 6 * PAYLOAD_BYTES_MAX + 1024

const unknownRun = (): AppError => new AppError('not_found', 'There is no such run')

export function sopRoutes(runtime: Runtime): Route[] {
  const engine = (): Sops => {
    const sops = runtime.sops()
    if (!sops) throw new AppError('unavailable', 'Procedures are not running here')
    return sops
  }
  return [
    ...procedureRoutes(runtime, engine),
    ...sopFileRoutes(runtime),
    ...runRoutes(runtime, engine),
    auditRoute(runtime),
    verifyRoute(runtime),
  ]
}

const procedureRoutes = ({ clock, procedures, store: { sops } }: Runtime, engine: () => Sops): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/sops',
    summary: 'The loaded procedures',
    auth: 'operator',
    answers: { 200: { description: 'By name', schema: v.object({ sops: v.array(sopSchema) }) } },
    async handle() {
      const running = engine()
      // A procedure that was just written is in the list once its change is noticed.
      await running.loaded()
      const [active, held] = await Promise.all([sops.activeCounts(), sops.waiting()])
      const waiting = Map.groupBy(held, ({ sop }) => sop)
      const shown = running.list().map((sop) => {
        const counts = { activeRuns: active.get(sop.name) ?? 0, waitingRuns: waiting.get(sop.name)?.length ?? 0 }
        return shownSop({ ...sop, ...counts })
      })
      return { sops: shown }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/sops/:name/runs',
    summary: 'Start a procedure by hand, whatever its triggers are; a client only with a `manual` trigger of that `role`',
    auth: 'client',
    bodyBytesMax: START_BYTES_MAX,
    body: v.object({
      payload: v.optional(v.pipe(v.unknown(), v.description('Any JSON value; the input of the first step'))),
      payload_text: v.exactOptional(
        v.pipe(v.string(), v.description('The payload as a text that need not be JSON, in place of `payload`')),
      ),
    }),
    answers: {
      200: { description: 'The run has started, or waits until a limit is free', schema: begunSchema },
      403: { description: 'A client names a procedure that no trigger opens to it' },
    },
    async handle({ by, role, params: { name = '' }, body: { payload, payload_text }, trace }) {
      const standing = standingOf(role)
      if (standing !== 'operator') await checkOpen(engine(), name, standing)
      const event: Parameters<Sops['run']>[1] = {
        payload: checkPayload(payload_text ?? (payload === undefined ? null : JSON.stringify(payload))),
        atMs: clock.nowMs(),
        by,
        standing,
        starter: by,
        trace: formatTraceContext(trace),
      }
      const runId = await engine()
        .run(name, event)
        .catch(async (error: unknown) => {
          // Names the number of folders with errors: the procedure may be in one of them.
          if (error instanceof AppError && error.code === 'not_found') sopNamed(await procedures.read(), name)
          throw error
        })
      return begun(await sops.get(runId), runId)
    },
  }),
]

const begunSchema = v.object({
  run_id: v.string(),
  status: v.picklist(['started', 'waiting']),
  reason: v.pipe(v.nullable(v.string()), v.description('The limit that holds the run back')),
})

const begun = (run: SopRun | undefined, runId: string): v.InferOutput<typeof begunSchema> =>
  run?.status === 'waiting' ? { run_id: runId, status: 'waiting', reason: run.reason } : { run_id: runId, status: 'started', reason: null }

/** Throws `forbidden`, also for a name that no procedure has. */
async function checkOpen(sops: Sops, name: string, standing: Standing): Promise<void> {
  await sops.loaded()
  if (!mayStartByName(sops, name, standing))
    throw new AppError(
      'forbidden',
      'Only an operator starts this procedure; `role = "client"` in a trigger of the type `manual` opens it to clients',
    )
}

/** Throws `too_large` for more than 64 KiB. */
function checkPayload(payload: string | null): string | null {
  if (payload === null || Buffer.byteLength(payload) <= PAYLOAD_BYTES_MAX) return payload
  throw new AppError('too_large', `A payload has at most ${PAYLOAD_BYTES_MAX} bytes`)
}

const runRoutes = ({ store: { sops } }: Runtime, engine: () => Sops): Route[] => [
  defineRoute({
    method: 'GET',
    path: '/api/sops/runs',
    summary: 'The runs of procedures, newest first; a client sees those that it has started',
    auth: 'client',
    query: v.object({
      limit: wholeText(1, PAGE_MAX, 50),
      before: filterText,
      sop: filterText,
      active: v.exactOptional(flag),
      status: v.exactOptional(v.picklist(RUN_STATUSES)),
    }),
    answers: {
      200: {
        description: 'A page. Pass `next`, the last `run_id`, as `before` to get the next page; null is the end',
        schema: v.object({ runs: v.array(runSchema), next: v.nullable(v.string()) }),
      },
    },
    async handle({ by, role, query: { active, limit, ...filter } }) {
      const own = standingOf(role) === 'operator' ? {} : { starter: by }
      const rows = await sops.runs({ ...filter, ...own, limit: limit + 1, ...(active !== undefined && { active: active === 'true' }) })
      const { page, next } = pageOf(rows, limit, ({ id }) => id)
      return { runs: page.map(shownRun), next }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/sops/runs/:id',
    summary: 'One run with its steps; a client sees a run that it has started',
    auth: 'client',
    answers: { 200: { description: 'The run', schema: runSchema } },
    async handle({ by, role, params: { id = '' } }) {
      const run = await sops.get(id)
      if (!run || !maySeeRun(run, { standing: standingOf(role), caller: by })) throw unknownRun()
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
    handle: async ({ by, params: { id = '' }, body: { reason } }) => shownRun(await engine().cancel(id, by, reason)),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/sops/runs/:id/replay',
    summary: 'Start the procedure of a failed, cancelled or expired run once more with the same event',
    auth: 'operator',
    answers: { 200: { description: 'The new run, the same one for each replay within three days', schema: begunSchema } },
    async handle({ by, params: { id = '' } }) {
      const runId = await engine().replay(id, by)
      return begun(await sops.get(runId), runId)
    },
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
        description: 'A page. Pass `next`, the last `number`, as `after` to get the next page; null is the end',
        schema: v.object({ records: v.array(auditSchema), next: v.nullable(v.number()) }),
      },
    },
    async handle({ query: { limit, ...filter } }) {
      const rows = await sops.audit({ ...filter, limit: limit + 1 })
      const { page, next } = pageOf(rows, limit, ({ number }) => number)
      return { records: page.map(shownAudit), next }
    },
  })

const verifyRoute = ({ store: { sops } }: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/sops/audit/verify',
    summary: 'Check the whole audit log: whether a record was changed, removed or inserted',
    auth: 'operator',
    answers: {
      200: {
        description: 'The result; keep `head` elsewhere to detect a log that was rewritten as a whole',
        schema: v.object({
          ok: v.boolean(),
          records: v.number(),
          head: v.pipe(v.string(), v.description('The hash of the last record')),
          broken: v.pipe(v.nullable(v.object({ number: v.number(), why: v.string() })), v.description('The first broken record')),
        }),
      },
    },
    async handle() {
      const { records, head, broken } = await sops.verify()
      return { ok: broken === null, records, head, broken }
    },
  })
