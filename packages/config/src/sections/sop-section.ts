/** The configuration section `[sop]`. */
import { isAbsolute, join, resolve } from 'node:path'
import { secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const count = (fallback: number, min: number, max: number, meaning: string) =>
  v.optional(v.pipe(whole(min, max), v.description(meaning)), fallback)

export const EXECUTION_MODES = ['auto', 'supervised', 'step_by_step', 'priority_based', 'deterministic'] as const
export const PRIORITIES = ['low', 'normal', 'high', 'critical'] as const

export const sopSection = {
  path: 'sop',
  schema: v.object({
    sops_dir: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.description('The folder that holds a folder for each procedure; a relative path starts at the data directory'),
      ),
      'sops',
    ),
    take_over: v.optional(
      v.pipe(
        v.boolean(),
        v.description('True: triggers may name /webhook and the paths of channels, so that their messages start procedures'),
      ),
      false,
    ),
    default_execution_mode: v.optional(
      v.pipe(v.picklist(EXECUTION_MODES), v.description('Which steps wait for a person, in procedures that name no execution mode')),
      'supervised',
    ),
    max_concurrent_total: count(
      0,
      0,
      10_000,
      'The largest number of runs of all procedures together that are at work; a run that waits for a person does not count. 0: no limit',
    ),
    approval_timeout_secs: count(300, 0, 31_536_000, 'Seconds a run waits for a person before it is cancelled; 0: no limit'),
    secrets: v.optional(
      v.pipe(
        v.record(v.string(), secretText()),
        v.description('The secrets with which senders of webhooks sign, each under the name that a trigger gives as `secret`'),
      ),
    ),
    max_finished_runs: count(100, 0, 1_000_000, 'The number of ended runs that are kept; 0: all. The audit log keeps everything'),
  }),
} as const

export type SopConfig = v.InferOutput<typeof sopSection.schema>

/**
 * Returns the two folders of procedures as absolute paths: the configured one, and the one in the workspace that earlier releases
 * read and that the agent can write.
 */
export function sopsFolders(
  { sops_dir }: Pick<SopConfig, 'sops_dir'>,
  roots: { readonly dataDir: string; readonly workspace: string; readonly home: string },
): readonly [configured: string, inWorkspace: string] {
  const path = sops_dir === '~' || sops_dir.startsWith('~/') ? join(roots.home, sops_dir.slice(1)) : sops_dir
  return [resolve(roots.dataDir, path), resolve(roots.workspace, isAbsolute(path) ? 'sops' : path)]
}
