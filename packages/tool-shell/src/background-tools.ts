/** The tools `shell_wait` and `shell_stop`, for commands that run on after their call. */
import { endsWithin, signalScope } from '@sluice/kit'
import { defineTool, type Host, type Tool, type Workspace, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { BackgroundJobs, Job } from './background.ts'
import { endText, joined } from './result-text.ts'

const WAIT_SECS_MAX = 600
const WAIT_SECS = 60
/** Ending a command takes two seconds where it ignores the first signal. */
const STOP_MS_MAX = 10_000

const jobInput = v.pipe(v.string(), v.regex(/^[0-9a-f]{1,32}$/, 'must be the id that shell has returned'))

interface Background {
  readonly jobs: BackgroundJobs
  readonly isOffered: boolean
  /** Returns the source of text of others in the output of a command. */
  source(command: string, workspace: Workspace): string | undefined
}

export function backgroundTools({ clock }: Pick<Host, 'clock'>, { jobs, isOffered, source }: Background): readonly Tool[] {
  const untrusted = ({ id }: { readonly id: string }, { workspace }: { readonly workspace: Workspace }) => {
    const job = jobs.find(id)
    return job && source(job.command, workspace)
  }
  const shared = { decider: 'asker', egress: false, untrusted, available: () => isOffered } as const
  return [
    defineTool({
      ...shared,
      name: 'shell_wait',
      description: 'Waits for a command that runs in the background, and returns its new output and its state.',
      risk: 'read',
      mayRepeat: true,
      input: v.object({ id: jobInput, timeout_secs: v.optional(whole(0, WAIT_SECS_MAX), WAIT_SECS) }),
      async run({ id, timeout_secs }, { session, signal, superseded }) {
        const job = jobs.of(session, id)
        if (!job) return jobs.missingText(session, id)
        using scope = signalScope([signal, superseded])
        await endsWithin(job.settled, timeout_secs * 1000, clock, scope.signal)
        return stateText(job)
      },
    }),
    defineTool({
      ...shared,
      name: 'shell_stop',
      description: 'Ends a command that runs in the background, and returns its last output.',
      risk: 'write',
      input: v.object({ id: jobInput }),
      async run({ id }, { session, signal }) {
        const job = jobs.of(session, id)
        if (!job) return jobs.missingText(session, id)
        job.stop()
        await endsWithin(job.settled, STOP_MS_MAX, clock, signal)
        return stateText(job)
      },
    }),
  ]
}

function stateText(job: Job): string {
  const { end } = job
  if (!end) return joined([job.read(), `[${job.id} still runs]`])
  if ('failure' in end) return joined([job.read(), `[${job.id} failed: ${end.failure}]`])
  return joined([job.read(), endText(end, 'its longest time')])
}
