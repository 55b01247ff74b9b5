/** Cuts the power at many points of a run, and looks at what each may leave. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { audit } from './audit.ts'
import { diskStateAt } from './disk-state.ts'
import { type Random, seededRandom } from './random.ts'
import type { ChildRun } from './run-child.ts'
import { parseMarks, type Told } from './told.ts'
import { type Call, MARKS } from './trace.ts'
import { problemAt, type Tried } from './tried.ts'

/** Of what no sync covered, in turn: nothing is on the disk, half of it, nearly all, hardly any, all. */
const SURVIVALS: readonly number[] = [0, 0.5, 0.95, 0.05, 1]

export interface PowerCutOptions {
  /** Spread over the run. */
  readonly cuts: number
  /** Tried for each. */
  readonly outcomes: number
  readonly seed: number
  /** The states are made below it, one at a time. */
  readonly root: string
}

export async function tryPowerCuts(run: ChildRun, { cuts, outcomes, seed, root }: PowerCutOptions): Promise<Tried> {
  const random = seededRandom(seed)
  const problems: string[] = []
  for (let cut = 0; cut < cuts; cut++) {
    const after = Math.ceil(((cut + random()) / cuts) * run.calls.length)
    for (let outcome = 0; outcome < outcomes; outcome++) {
      const survival = SURVIVALS[outcome % SURVIVALS.length] ?? 0
      const found = await auditAfter(run, { after, survival, random, root })
      problems.push(...problemAt(`seed ${seed}, cut after call ${after} of ${run.calls.length}, survival ${survival}`, found))
    }
  }
  return { states: cuts * outcomes, problems }
}

async function auditAfter(
  { file, calls }: ChildRun,
  { after, survival, random, root }: { readonly after: number; readonly survival: number; readonly random: Random; readonly root: string },
): Promise<string[]> {
  const folder = mkdtempSync(join(root, 'state-'))
  try {
    for (const [name, bytes] of diskStateAt(calls, { after, survival, random })) {
      // The index of the log is shared memory, made anew by whoever opens the file first.
      if (!name.endsWith('-shm')) writeFileSync(join(folder, name), bytes)
    }
    return await audit(join(folder, basename(file)), toldBefore(calls, after))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function toldBefore(calls: readonly Call[], after: number): Told {
  const marks = calls.slice(0, after).filter(({ operation, file }) => operation === 'write' && file === MARKS)
  return parseMarks(Buffer.concat(marks.map(({ bytes }) => bytes)).toString())
}
