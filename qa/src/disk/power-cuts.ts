/** Cuts the power at many points of a run and audits the possible states after each. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createRandom } from '@sluice/testkit/random'
import { audit } from './audit.ts'
import { diskStateAt } from './disk-state.ts'
import { type Findings, problemAt } from './findings.ts'
import { type Marks, parseMarks } from './marks.ts'
import type { ChildRun } from './run-child.ts'
import { type Call, MARKS_FILE } from './trace.ts'

/** The survival probability of unsynced changes, by outcome: none survive, half, nearly all, hardly any, all. */
const SURVIVALS: readonly number[] = [0, 0.5, 0.95, 0.05, 1]

/** How many cuts to try. */
export interface PowerCutOptions {
  /** The number of cuts, spread over the run. */
  readonly cuts: number
  /** The number of outcomes for each cut. */
  readonly outcomes: number
  readonly seed: number
  /** The folder in which the states are created, one at a time. */
  readonly root: string
  /** Called after each audited state. */
  readonly onState?: (() => void) | undefined
}

/** Audits the possible states after each cut of a run. */
export async function tryPowerCuts(run: ChildRun, { cuts, outcomes, seed, root, onState }: PowerCutOptions): Promise<Findings> {
  const random = createRandom(seed).next
  const problems: string[] = []
  for (let cut = 0; cut < cuts; cut++) {
    const after = Math.ceil(((cut + random()) / cuts) * run.calls.length)
    for (let outcome = 0; outcome < outcomes; outcome++) {
      const survival = SURVIVALS[outcome % SURVIVALS.length] ?? 0
      const found = await auditAfter(run, { after, survival, random, root })
      problems.push(...problemAt(`seed ${seed}, cut after call ${after} of ${run.calls.length}, survival ${survival}`, found))
      onState?.()
    }
  }
  return { states: cuts * outcomes, problems }
}

async function auditAfter(
  { file, calls }: ChildRun,
  {
    after,
    survival,
    random,
    root,
  }: { readonly after: number; readonly survival: number; readonly random: () => number; readonly root: string },
): Promise<string[]> {
  const folder = mkdtempSync(join(root, 'state-'))
  try {
    for (const [name, bytes] of diskStateAt(calls, { after, survival, random })) {
      // The index of the log is shared memory, which the first process to open the file creates again.
      if (!name.endsWith('-shm')) writeFileSync(join(folder, name), bytes)
    }
    return await audit(join(folder, basename(file)), marksBefore(calls, after))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function marksBefore(calls: readonly Call[], after: number): Marks {
  const writes = calls.slice(0, after).filter(({ operation, file }) => operation === 'write' && file === MARKS_FILE)
  return parseMarks(Buffer.concat(writes.map(({ bytes }) => bytes)).toString())
}
