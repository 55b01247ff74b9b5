/** `/api/approvals`: the approvals that people are asked for. A device sees and decides only approvals to which it has access. */

import {
  APPROVAL_STATES,
  type ApprovalCaller,
  approvalSchema,
  decidedBefore,
  FEEDBACK_CHARS_MAX,
  notYours,
  outlineOf,
  shownApproval,
  unknownApproval,
} from '@sluice/approvals'
import type { Runtime } from '@sluice/runtime'
import { AppError, type Approval, type ApprovalKey, actorName, defineRoute, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import { deciderOf, ownerOf, standingOf } from '../auth/identity.ts'
import { cursorOf, filterText, pageOf, readCursor, wholeText } from './query.ts'

const PAGE_MAX = 500

const querySchema = v.object({
  limit: wholeText(1, PAGE_MAX, 50),
  state: v.exactOptional(v.picklist(APPROVAL_STATES)),
  before_run: v.exactOptional(v.string()),
  before_step: v.exactOptional(v.string()),
  cursor: filterText,
})

const answerSchema = v.object({
  approved: v.boolean(),
  feedback: v.exactOptional(v.pipe(v.string(), v.maxLength(FEEDBACK_CHARS_MAX))),
})

const keyOf = ({ run = '', step = '' }: Readonly<Record<string, string>>): ApprovalKey => ({ runId: run, stepId: step })

const callerOf = ({ role, device, onControlSocket }: Pick<RouteRequest, 'role' | 'device' | 'onControlSocket'>): ApprovalCaller => ({
  role,
  owner: ownerOf(device),
  onControlSocket,
})

/** The approval as this caller may see it: whole, as an outline, or not at all. */
function shownTo(caller: ApprovalCaller, approval: Approval, { approvals }: Runtime) {
  const access = approvals.access(approval, caller)
  if (access === 'none') return undefined
  return shownApproval(access === 'whole' ? approval : outlineOf(approval))
}

/** Returns the approval that the page begins after; undefined for the first page. */
function keyBefore({ before_run, before_step, cursor }: Omit<v.InferOutput<typeof querySchema>, 'limit'>): ApprovalKey | undefined {
  if ((before_run === undefined) !== (before_step === undefined))
    throw new AppError('invalid_request', 'before_run and before_step belong together')
  if (cursor !== undefined) {
    const [runId, stepId] = readCursor(cursor, v.tuple([v.string(), v.string()]))
    return { runId, stepId }
  }
  return before_run !== undefined && before_step !== undefined ? { runId: before_run, stepId: before_step } : undefined
}

export const approvalRoutes = (runtime: Runtime): Route[] => [listRoute(runtime), approvalRoute(runtime), decideRoute(runtime)]

const listRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/approvals',
    summary: 'The approvals that people were asked for, with their decisions',
    auth: 'client',
    query: querySchema,
    answers: {
      200: {
        description:
          'A page, newest first. Pass `next` as `cursor` to get the next page; null is the end. `before_run` and `before_step` name the last approval of a page instead',
        schema: v.object({ approvals: v.array(approvalSchema), next: v.nullable(v.string()) }),
      },
    },
    async handle({ query: { limit, state, ...place }, ...request }) {
      const before = keyBefore(place)
      const caller = callerOf(request)
      const rows = await runtime.store.approvals.list({
        limit: limit + 1,
        ...(state !== undefined && { state }),
        ...(before && { before }),
        ...(caller.role !== 'operator' && { owner: caller.owner }),
      })
      const { page, next } = pageOf(rows, limit, ({ runId, stepId }) => cursorOf([runId, stepId]))
      return { approvals: page.flatMap((approval) => shownTo(caller, approval, runtime) ?? []), next }
    },
  })

const approvalRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/approvals/:run/:step',
    summary: 'One approval',
    auth: 'client',
    answers: { 200: { description: 'The approval and its state', schema: approvalSchema } },
    async handle({ params, ...request }) {
      const key = keyOf(params)
      const approval = await runtime.approvals.get(key)
      const shown = approval && shownTo(callerOf(request), approval, runtime)
      if (!shown) throw unknownApproval(key)
      return shown
    },
  })

const decideRoute = ({ approvals, store }: Runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/approvals/:run/:step',
    summary: 'Approve or reject; the first answer counts, whichever way it was given',
    auth: 'client',
    body: answerSchema,
    answers: {
      200: {
        description: 'The decision is stored; the waiting turn or procedure gets it next',
        schema: v.object({
          status: v.literal('ok'),
          run_id: v.string(),
          step_id: v.string(),
          approved: v.boolean(),
          state: v.picklist(APPROVAL_STATES),
        }),
      },
      403: { description: 'A tool call of another device, which only that device may decide here' },
      409: { description: 'It was decided before; `state` is the decision and `by` the person' },
    },
    async handle({ params, by, body: { approved, feedback }, ...request }) {
      const key = keyOf(params)
      const known = await approvals.get(key)
      const access = known ? approvals.access(known, callerOf(request)) : 'none'
      if (!known || access === 'none') throw unknownApproval(key)
      if (access === 'outline') throw notYours(known)
      const { won, approval } = await approvals.decide(key, {
        state: approved ? 'approved' : 'rejected',
        by: deciderOf(by),
        who: { standing: standingOf(request.role), isAsked: known.owner === ownerOf(request.device) },
        ...(feedback !== undefined && { feedback }),
      })
      if (!won) throw decidedBefore(approval, await actorName(approval.by ?? '', store.devices))
      return { status: 'ok', run_id: key.runId, step_id: key.stepId, approved, state: approval.state }
    },
  })
