/** Runs the child again and again, each time with a fault at another of its calls. */
import { rmSync } from 'node:fs'
import { audit } from './audit.ts'
import { type ChildRun, type Fault, type RunOptions, runChild } from './run-child.ts'
import { type Call, canFail } from './trace.ts'
import { problemAt, type Tried } from './tried.ts'

/** Children run side by side. */
const LANES = 2

export const FAULTS = {
  'one call fails': { error: 'EIO', ends: 'at once' },
  'one write is cut short': { error: 'ENOSPC', short: true, ends: 'at once' },
  'the disk is full until space is freed': { error: 'ENOSPC', short: true, ends: 'freed' },
  'the disk fails for good': { error: 'EIO', ends: 'never' },
} as const satisfies Readonly<Record<string, Omit<Fault, 'at'>>>

/** Numbers of those calls that the shim can fail and `isWanted` takes, spread over the run. */
export function faultPoints(calls: readonly Call[], count: number, isWanted: (call: Call) => boolean = () => true): number[] {
  const numbers = calls.filter(canFail).flatMap((call, index) => (isWanted(call) ? index + 1 : []))
  return Array.from({ length: count }, (_, index) => numbers[Math.floor(((index + 0.5) / count) * numbers.length)] ?? 1)
}

interface FaultOptions extends Omit<RunOptions, 'fault'> {
  readonly fault: Omit<Fault, 'at'>
  readonly points: readonly number[]
  /** What is tried with each run. Default: the rules on what it left. */
  readonly look?: (run: ChildRun) => Promise<Tried>
}

export async function tryFaults({ fault, points, look = auditRun, ...options }: FaultOptions): Promise<Tried> {
  const problems: string[] = []
  const left = [...points]
  let states = 0
  const lane = async (): Promise<void> => {
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      const run = await runChild({ ...options, fault: { ...fault, at } })
      const found = await look(run)
      states += found.states
      const place = `${fault.error} at call ${at}`
      problems.push(...problemAt(place, [...courseProblems(run)]), ...found.problems.map((problem) => `${place}: ${problem}`))
      rmSync(run.home, { recursive: true })
    }
  }
  function* courseProblems({ calls, told }: ChildRun): Generator<string> {
    if (!calls.some(({ failed }) => failed)) yield 'nothing failed'
    if (fault.ends !== 'never' && told.kept.size < options.arrivals) yield 'it did not go on once the fault had ended'
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return { states, problems }
}

const auditRun = async ({ file, told }: ChildRun): Promise<Tried> => ({
  states: 1,
  problems: problemAt('afterwards', await audit(file, told)),
})
