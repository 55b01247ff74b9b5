/** Runs the child repeatedly, each time with a fault at another call. */
import { rmSync } from 'node:fs'
import { audit } from './audit.ts'
import { type Findings, problemAt } from './findings.ts'
import { type ChildRun, type Fault, type RunOptions, runChild } from './run-child.ts'
import { type Call, canFail } from './trace.ts'

/** The number of children that run at once. */
const CHILDREN_MAX = 2

/** The kinds of faults by title. */
export const FAULTS = {
  'one call fails': { error: 'EIO', ends: 'at once' },
  'one write is cut short': { error: 'ENOSPC', short: true, ends: 'at once' },
  'the disk is full until space is freed': { error: 'ENOSPC', short: true, ends: 'freed' },
  'the disk fails permanently': { error: 'EIO', ends: 'never' },
} as const satisfies Readonly<Record<string, Omit<Fault, 'at'>>>

/** Returns the numbers of `count` calls that the shim can fail and `isWanted` accepts, spread over the run. */
export function faultPoints(calls: readonly Call[], count: number, isWanted: (call: Call) => boolean = () => true): number[] {
  const numbers = calls.filter(canFail).flatMap((call, index) => (isWanted(call) ? index + 1 : []))
  return Array.from({ length: count }, (_, index) => numbers[Math.floor(((index + 0.5) / count) * numbers.length)] ?? 1)
}

interface FaultOptions extends Omit<RunOptions, 'fault'> {
  readonly fault: Omit<Fault, 'at'>
  readonly points: readonly number[]
  /** Examines each run. Default: audits what the run left. */
  readonly look?: (run: ChildRun) => Promise<Findings>
  /** Called after each examined run. */
  readonly onState?: (() => void) | undefined
}

/** Runs the child once for each point and examines the result. */
export async function tryFaults({ fault, points, look = auditRun, onState, ...options }: FaultOptions): Promise<Findings> {
  const problems: string[] = []
  const left = [...points]
  let states = 0
  const worker = async (): Promise<void> => {
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      const run = await runChild({ ...options, fault: { ...fault, at } })
      const found = await look(run)
      states += found.states
      const place = `${fault.error} at call ${at}`
      problems.push(...problemAt(place, [...courseProblems(run)]), ...found.problems.map((problem) => `${place}: ${problem}`))
      rmSync(run.home, { recursive: true })
      onState?.()
    }
  }
  function* courseProblems({ calls, marks }: ChildRun): Generator<string> {
    if (!calls.some(({ failed }) => failed)) yield 'no call failed'
    if (fault.ends !== 'never' && marks.kept.size < options.arrivals) yield 'the child did not continue after the fault'
  }
  await Promise.all(Array.from({ length: CHILDREN_MAX }, worker))
  return { states, problems }
}

const auditRun = async ({ file, marks }: ChildRun): Promise<Findings> => ({
  states: 1,
  problems: problemAt('after the run', await audit(file, marks)),
})
