/** `sluice approvals`: lists and decides approval requests. Without a daemon, the next daemon dispatches a decision. */
import type { ShownApproval } from '@sluice/approvals'
import { APPROVAL_STATES } from '@sluice/approvals/states'
import { AppError, oneLine } from '@sluice/sdk'
import { type Api, apiPath } from '../api/api.ts'
import { deviceNames } from '../api/device-names.ts'
import { withApi } from '../api/open-api.ts'
import { type Page, readPages } from '../api/pages.ts'
import type { CliContext, Output } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { limitOption, PAGE_MAX, textOption } from '../option-values.ts'
import { NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'

export async function list(context: CliContext): Promise<number> {
  const { out, json } = context
  const state = stateOption(context)
  const limit = limitOption(context)
  return withApi(context, async (api) => {
    const { items, next } = await readApprovals(api, limit, state)
    if (json) out.json(items)
    else if (items.length === 0) out.print(state ? `no approval is ${state}` : 'no approvals')
    else {
      const named = await deviceNames(
        api,
        items.map(({ by }) => by),
      )
      out.table(
        ['created', 'run', 'step', 'workflow', 'title', 'state', 'by'],
        items.map((approval) => tableRow({ ...approval, by: named(approval.by) })),
      )
    }
    if (next !== null) out.warn('there are older approvals: raise --limit')
    return 0
  })
}

const readApprovals = (api: Api, limit: number, state?: string): Promise<Page<ShownApproval, string>> =>
  readPages(limit, PAGE_MAX, async (size, cursor) => {
    const page = await api.get<{ approvals: ShownApproval[]; next: string | null }>('/api/approvals', { limit: size, cursor, state })
    return { items: page.approvals, next: page.next }
  })

export const show = async (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const approval = await onApproval(context, api, (path) => api.get<ShownApproval>(path))
    if (context.json) context.out.json(approval)
    else {
      const named = await deviceNames(api, [approval.by])
      printApproval(context.out, { ...approval, by: approval.by && named(approval.by) })
    }
    return 0
  })

export const approve = (context: CliContext): Promise<number> => decide(context, 'approved')
export const reject = (context: CliContext): Promise<number> => decide(context, 'rejected')

const decide = async (context: CliContext, state: 'approved' | 'rejected'): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const feedback = args[2]?.trim() || undefined
    const { run_id, step_id } = await onApproval(context, api, (path) =>
      api.post<Pick<ShownApproval, 'run_id' | 'step_id'>>(path, { approved: state === 'approved', feedback }),
    )
    if (json) out.json(await api.get<ShownApproval>(apiPath('/api/approvals', run_id, step_id)))
    else out.print(`${state} ${oneLine(run_id, TEXT_CHARS_MAX)} ${oneLine(step_id, TEXT_CHARS_MAX)}`)
    return 0
  })

/** Calls `work` with the path of the approval of a run and a step. The run may be a prefix that no other recent run with this step shares. */
async function onApproval<Answer>(
  { args: [runId = '', stepId = ''] }: CliContext,
  api: Api,
  work: (path: string) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await work(apiPath('/api/approvals', runId, stepId))
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    const ofStep = (await readApprovals(api, PAGE_MAX)).items.filter(({ step_id }) => step_id === stepId)
    const found = findByPrefix(runId, ofStep, (approval) => approval.run_id, 'runs')
    if (!found) throw error
    return work(apiPath('/api/approvals', found.run_id, stepId))
  }
}

function stateOption(context: CliContext): string | undefined {
  const state = textOption(context, 'state')
  if (state === undefined || APPROVAL_STATES.some((known) => known === state)) return state
  throw new AppError('invalid_request', `--state wants one of ${APPROVAL_STATES.join(', ')}, not '${state}'`)
}

const tableRow = ({ created_at, run_id, step_id, workflow_name, title, state, by }: ShownApproval): string[] => [
  created_at,
  oneLine(run_id, TEXT_CHARS_MAX),
  oneLine(step_id, TEXT_CHARS_MAX),
  oneLine(workflow_name, NAME_CHARS_MAX),
  oneLine(title, TEXT_CHARS_MAX),
  state,
  oneLine(by ?? '', NAME_CHARS_MAX),
]

function printApproval(out: Output, approval: ShownApproval): void {
  printFields(out, {
    run: approval.run_id,
    step: approval.step_id,
    gate: approval.gate,
    workflow: approval.workflow_name,
    title: approval.title,
    'call sha256': approval.call_sha256,
    state: approval.state,
    by: approval.by,
    feedback: approval.feedback,
    created: approval.created_at,
    expires: approval.expires_at ?? 'never',
    decided: approval.decided_at,
    dispatched: approval.settled_at,
    approve: approval.approve_keywords.join(', '),
    reject: approval.reject_keywords.join(', '),
  })
  if (approval.message !== '') printBlock(out, 'message', approval.message)
  if (approval.prompts.length === 0) return
  out.print('')
  out.table(
    ['reply', 'channel', 'to', 'provider id'],
    approval.prompts.map(({ outbox, channel, to, provider_id }) => [
      String(outbox),
      channel,
      oneLine(to, NAME_CHARS_MAX),
      oneLine(provider_id ?? 'not sent yet', NAME_CHARS_MAX),
    ]),
  )
}
