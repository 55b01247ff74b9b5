/** The configuration of procedures, `[sop]` (§4.3). */
import { isAbsolute, join, resolve } from 'node:path'
import { whole } from '@sluice/sdk'
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
        v.description('Where the folders of procedures are; a relative path begins at the data directory'),
      ),
      'sops',
    ),
    take_over: v.optional(
      v.pipe(
        v.boolean(),
        v.description('True: triggers may name /webhook and the paths of channels, whose messages then start procedures'),
      ),
      false,
    ),
    default_execution_mode: v.optional(
      v.pipe(v.picklist(EXECUTION_MODES), v.description('For procedures that name none: which of their steps wait for a person')),
      'supervised',
    ),
    max_concurrent_total: count(4, 1, 10_000, 'Runs of all procedures that have not ended; one more is not started'),
    approval_timeout_secs: count(300, 0, 31_536_000, 'How long a run waits for a person before it is cancelled; 0: for ever'),
    max_finished_runs: count(100, 0, 1_000_000, 'Ended runs that are kept; 0: all. The audit log keeps everything'),
  }),
} as const

export type SopConfig = v.InferOutput<typeof sopSection.schema>

/**
 * The folders of procedures, absolute: the one that is meant, and the one in the workspace that earlier releases read, where the
 * agent can write.
 */
export function sopsFolders(
  { sops_dir }: Pick<SopConfig, 'sops_dir'>,
  roots: { readonly dataDir: string; readonly workspace: string; readonly home: string },
): readonly [meant: string, inWorkspace: string] {
  const path = sops_dir === '~' || sops_dir.startsWith('~/') ? join(roots.home, sops_dir.slice(1)) : sops_dir
  return [resolve(roots.dataDir, path), resolve(roots.workspace, isAbsolute(path) ? 'sops' : path)]
}
