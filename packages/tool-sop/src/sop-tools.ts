/** The tools `sop_list`, `sop_execute`, `sop_status`, `sop_approve` and `sop_advance`; see `docs/contract.md#procedures`. */
import {
  AppError,
  type CallingAgent,
  defineTool,
  formatTraceContext,
  type Host,
  isAtLeast,
  MAIN_AGENT,
  maySeeRun,
  mayStartByName,
  type SopRun,
  type SopSummary,
  type Sops,
  type Standing,
  type Tool,
  type ToolContext,
  wasStartedIn,
  withFullStop,
} from '@sluice/sdk'
import * as v from 'valibot'
import { runLine, runText } from './run-text.ts'

const LISTED_MAX = 100
const RUNS_LISTED = 20
/** The newest runs of all agents, among which the runs of the calling agent are found. */
const RUNS_READ = 500
const NAME_CHARS_MAX = 200
const PAYLOAD_CHARS_MAX = 65_536
const OUTPUT_CHARS_MAX = 16_384

const nameInput = (description: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX), v.description(description))

/** `sop_list`: the procedures that are loaded. */
export const sopList = (host: Host): Tool =>
  defineTool({
    name: 'sop_list',
    description:
      'Lists the standard operating procedures that can be run: what each does, what triggers it, how many runs of it are active.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      filter: v.optional(
        v.pipe(v.string(), v.maxLength(NAME_CHARS_MAX), v.description('A part of the name, or a priority (low, normal, high, critical)')),
        '',
      ),
    }),
    async run({ filter }, by) {
      const all = sopsOf(host)
        .list()
        .filter((sop) => isOf(by, sop))
      if (all.length === 0) return 'No procedures are loaded.'
      const wanted = filter.trim().toLowerCase()
      const matching = all.filter(({ name, priority }) => name.toLowerCase().includes(wanted) || priority === wanted)
      if (matching.length === 0) return `No procedure matches "${filter}".`
      const lines = matching.slice(0, LISTED_MAX).map((sop) => {
        const { name, description, priority, mode, steps } = sop
        return `${name} (${[priority, mode, `${steps} steps`, ...detailsFor(by.standing, sop)].join(', ')}): ${description}`
      })
      const omitted = matching.length - lines.length
      const footer = omitted > 0 ? [`and ${omitted} more`] : []
      return [`${all.length} procedures, ${matching.length} shown:`, ...lines, ...footer].join('\n')
    },
  })

/** Operators see triggers and the number of runs. Any other person sees whether an operator must approve a start. */
function detailsFor(standing: Standing, { triggers, activeRuns, openTo }: SopSummary): readonly string[] {
  if (standing === 'operator') return [triggers.join(' ') || 'no trigger', ...(activeRuns > 0 ? [`${activeRuns} active`] : [])]
  return isAtLeast(standing, openTo) ? [] : ['an operator approves its start']
}

/**
 * `sop_execute`: starts a procedure. An operator approves the start unless a trigger opens the procedure to the principal of the turn. The
 * procedure itself decides which of its steps a person must approve.
 */
export const sopExecute = (host: Host): Tool =>
  defineTool({
    name: 'sop_execute',
    description: 'Starts a standard operating procedure by name. The run continues in the background; call sop_status for its progress.',
    risk: 'execute',
    egress: false,
    untrusted: true,
    decider: ({ name }, { standing }) => (mayStartByName(host.service('sops'), name, standing) ? 'asker' : 'operator'),
    input: v.object({
      name: nameInput('A name that sop_list shows'),
      payload: v.optional(v.pipe(v.string(), v.maxLength(PAYLOAD_CHARS_MAX), v.description('Input of the first step: JSON or any text'))),
    }),
    async run({ name, payload = null }, by) {
      const { turn, trace, standing, caller, session } = by
      const sops = sopsOf(host)
      const wasOpen = mayStartByName(sops, name, standing)
      await sops.loaded()
      if (wasOpen && !mayStartByName(sops, name, standing)) throw new AppError('conflict', `The procedure ${name} has changed. Call again.`)
      const sop = sops.list().find((one) => one.name === name)
      if (sop && !isOf(by, sop)) throw new AppError('forbidden', `Agent "${sop.agent}" carries out ${name}. You cannot start it.`)
      const who = { by: `turn:${turn}`, standing, ...(caller !== undefined && { starter: caller }), ...(session !== null && { session }) }
      const runId = await sops.run(name, { payload, atMs: host.clock.nowMs(), ...who, trace: formatTraceContext(trace) })
      const run = await sops.get(runId)
      const begun = run?.status === 'waiting' ? withFullStop(`The run waits and starts by itself: ${run.reason}`) : 'Started.'
      return `${begun}\n${run && maySeeRun(run, by) ? runText(run) : runId}`
    },
  })

/**
 * `sop_status`: the state of one run, or of the newest runs, as far as the person of the turn may see them. A room, whose people read the answer,
 * sees the runs that were started there, and a further one only if an operator names it.
 */
export const sopStatus = (host: Host): Tool =>
  defineTool({
    name: 'sop_status',
    description: 'Shows the state of one run of a procedure, step by step. Without run_id, lists the newest runs.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: ({ run_id }) => (run_id === undefined ? undefined : `results of run ${run_id}`),
    input: v.object({
      run_id: v.optional(nameInput('A run id that sop_execute or sop_status returned')),
      sop_name: v.optional(nameInput('Only runs of this procedure')),
    }),
    async run({ run_id, sop_name }, by) {
      const sops = sopsOf(host)
      if (run_id !== undefined) {
        const run = await ownRun(sops, by, run_id)
        if (!mayShow(run, by)) throw unknownRun(run_id)
        return runText(run)
      }
      const { standing, caller = '' } = by
      const own = standing === 'operator' ? {} : { starter: caller }
      const newest = await sops.runs({ limit: RUNS_READ, ...own, ...(sop_name !== undefined && { sop: sop_name }) })
      const runs = newest.filter((run) => isOf(by, run) && maySeeRun(run, by) && isForPlace(run, by)).slice(0, RUNS_LISTED)
      return runs.length === 0 ? 'There are no runs.' : runs.map(runLine).join('\n')
    },
  })

/** `sop_approve`: passes an operator's approval to a run that waits for one. A model cannot approve in a person's place. */
export const sopApprove = (host: Host): Tool =>
  defineTool({
    name: 'sop_approve',
    description: 'Resumes a run that waits for a person. An operator must approve this very call; without that approval it fails.',
    risk: 'execute',
    decider: 'operator',
    egress: false,
    untrusted: true,
    alwaysAsks: true,
    input: v.object({ run_id: nameInput('The run that waits') }),
    async precheck({ run_id }, by) {
      await ownRun(sopsOf(host), by, run_id)
    },
    async run({ run_id }, by) {
      const { approvedBy } = by
      if (approvedBy === undefined) {
        throw new AppError('forbidden', 'Only a person can approve a step, and no person has approved this call.')
      }
      const sops = sopsOf(host)
      await ownRun(sops, by, run_id)
      const run = await sops.approve(run_id, approvedBy)
      return [`Approved by ${approvedBy}.`, ...(mayShow(run, by) ? [runText(run)] : [])].join('\n')
    },
  })

/** `sop_advance`: reports the outcome of the step that the turn works on. The report takes effect when the turn ends. */
export const sopAdvance = (host: Host): Tool =>
  defineTool({
    name: 'sop_advance',
    description:
      'Reports the outcome of the procedure step that this turn works on. Without a report, a turn that succeeds completes its step.',
    risk: 'write',
    decider: 'asker',
    reportsOnly: true,
    egress: false,
    untrusted: false,
    input: v.object({
      run_id: nameInput('The run this turn works for'),
      status: v.pipe(
        v.picklist(['completed', 'failed', 'skipped']),
        v.description('failed ends the run; skipped continues with the next step'),
      ),
      output: v.pipe(
        v.string(),
        v.maxLength(OUTPUT_CHARS_MAX),
        v.description('The result of the step, which is the input of the next step'),
      ),
    }),
    async run({ run_id, status, output }, { turn }) {
      const { step } = await sopsOf(host).report(run_id, turn, { status, output })
      return `Step ${step} is reported as ${status}; this takes effect when the turn ends.`
    },
  })

type Agent = Pick<CallingAgent, 'agent'>

/** Returns whether the agent carries out the procedure or run. An agent reaches no other one, because it could act through it. */
const isOf = (by: Agent, { agent = MAIN_AGENT }: Pick<SopRun, 'agent'>): boolean => agent === by.agent

type Place = Pick<ToolContext, 'isInRoom' | 'session'>

/** Returns whether a run may be shown where the call is made: in a room, if it was started there. */
const isForPlace = (run: SopRun, { isInRoom, session }: Place): boolean => !isInRoom || (session !== null && wasStartedIn(run, session))

/** Returns whether a run that the call names may be shown where the call is made. */
const mayShow = (run: SopRun, by: ToolContext): boolean => by.standing === 'operator' || isForPlace(run, by)

/** Returns a run of the agent. Throws `not_found` also for a run of another agent, and for one that the person of the turn may not see. */
async function ownRun(sops: Sops, by: Agent & Pick<ToolContext, 'standing' | 'caller'>, id: string): Promise<SopRun> {
  const run = await sops.get(id)
  if (!run || !isOf(by, run) || !maySeeRun(run, by)) throw unknownRun(id)
  return run
}

const unknownRun = (id: string): AppError => new AppError('not_found', `There is no run "${id}".`)

/**
 * Returns the procedure engine. Each call looks it up, because the engine starts after the tools are built. Throws
 * `unavailable` when no engine runs, as in a command without a daemon.
 */
function sopsOf(host: Host): Sops {
  const sops = host.service('sops')
  if (!sops) throw new AppError('unavailable', 'Procedures run only in the daemon; start it with sluice daemon.')
  return sops
}
