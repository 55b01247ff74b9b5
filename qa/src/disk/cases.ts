/** The suite: faults that the store must survive, and planted bugs that the suite must detect. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { diskStateAt } from './disk-state.ts'
import { FAULTS, faultPoints, tryFaults } from './faults.ts'
import type { Findings } from './findings.ts'
import { tryPowerCuts } from './power-cuts.ts'
import { type ChildRun, type RunOptions, runChild } from './run-child.ts'
import { type Call, canFail, FOLDER, MARKS_FILE } from './trace.ts'

const LOST = 'was acknowledged and is missing'
/** The number of power cuts within which a missing sync must show. */
const PLANTED_CUTS = 20

/** How many variants the suite tries. */
export interface Size {
  readonly arrivals: number
  /** Points at which the power is cut, and outcomes tried for each. */
  readonly cuts: number
  readonly outcomes: number
  /** Calls that fail, for each kind of fault. */
  readonly faults: number
  /** Failed syncs before a power cut, and power cuts for each. */
  readonly failedSyncs: number
  readonly cutsAfterFailedSync: number
}

/** The shim, folders and sizes that every case uses. */
export interface Bench {
  readonly shim: string
  /** A folder that the suite may fill. */
  readonly root: string
  readonly seed: number
  readonly size: Size
  /** A run without faults. */
  readonly sound: ChildRun
  /** Called after each state that was audited, and after each run that was examined. */
  readonly onState?: () => void
}

/** One part of the suite. */
export interface Case {
  readonly title: string
  /** Part of a problem that the case must find, because it plants a bug. */
  readonly mustFind?: string
  readonly run: (bench: Bench) => Promise<Findings>
}

/** Whether the case found no problem or, with a planted bug, the expected one. */
export const isAsExpected = ({ mustFind }: Case, { problems }: Findings): boolean =>
  mustFind === undefined ? problems.length === 0 : problems.some((problem) => problem.includes(mustFind))

/** Runs the child once without faults. */
export async function setUpBench(bench: Omit<Bench, 'sound'>): Promise<Bench> {
  return { ...bench, sound: await runChild(runOptionsOf(bench)) }
}

/** The parts of the suite, in order. */
export const CASES: readonly Case[] = [
  { title: 'the trace contains every change on the disk', run: async ({ sound }) => compareWithDisk(sound) },
  { title: 'a power cut loses nothing acknowledged', run: (bench) => cutPower(bench, bench.sound) },
  {
    title: 'a power cut after a failed sync loses nothing acknowledged',
    run: (bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        fault: FAULTS['one call fails'],
        // SQLite ignores a failed sync of a folder, and no later sync would bring back what it lost.
        points: faultPoints(bench.sound.calls, bench.size.failedSyncs, ({ operation, file }) => operation === 'sync' && file !== FOLDER),
        look: (run) => cutPower(bench, run, bench.size.cutsAfterFailedSync),
      }),
  },
  ...Object.entries(FAULTS).map(([name, fault]) => ({
    title: `${name}: acknowledged data stays, refused data can come again${fault.ends === 'never' ? '' : ', the process continues'}`,
    run: (bench: Bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        onState: bench.onState,
        fault,
        points: [
          ...faultPoints(bench.sound.calls, bench.size.faults),
          ...faultPoints(bench.sound.calls, bench.size.faults, ({ operation }) => operation === 'sync'),
        ],
      }),
  })),
  {
    title: 'the suite detects a store that does not sync',
    mustFind: LOST,
    run: async (bench) =>
      cutPower(bench, await runChild({ ...runOptionsOf(bench), planted: { pragmas: 'PRAGMA synchronous = OFF' } }), PLANTED_CUTS),
  },
  {
    title: 'the suite detects a store that syncs only at checkpoints',
    mustFind: LOST,
    run: async (bench) =>
      cutPower(bench, await runChild({ ...runOptionsOf(bench), planted: { pragmas: 'PRAGMA synchronous = NORMAL' } }), PLANTED_CUTS),
  },
  {
    title: 'the suite detects an acknowledgement before the write',
    mustFind: LOST,
    run: (bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        fault: FAULTS['the disk fails permanently'],
        points: [lastWriteBeforeFirstMark(bench.sound.calls)],
        planted: { acknowledgesEarly: true },
      }),
  },
]

function runOptionsOf({ shim, root, size: { arrivals } }: Omit<Bench, 'sound'>): RunOptions {
  return { shim, root, arrivals }
}

const cutPower = ({ seed, root, size, onState }: Bench, run: ChildRun, cuts = size.cuts): Promise<Findings> =>
  tryPowerCuts(run, { cuts, outcomes: size.outcomes, seed, root, onState })

/** The number of the last write before the first acknowledgement; the sync follows it. */
function lastWriteBeforeFirstMark(calls: readonly Call[]): number {
  const firstMark = calls.findIndex(({ operation, file }) => operation === 'write' && file === MARKS_FILE)
  return calls.slice(0, firstMark).filter(canFail).length - 1
}

/** Replays the whole trace. A missed or misread call would make the result differ from the files. */
function compareWithDisk({ file, calls }: ChildRun): Findings {
  const replayed = diskStateAt(calls, { after: calls.length, survival: 1, random: () => 0 })
  const differing = ['sluice.db', 'sluice.db-wal', MARKS_FILE].filter(
    (name) => Buffer.compare(replayed.get(name) ?? Buffer.alloc(0), readFileSync(join(dirname(file), name))) !== 0,
  )
  return { states: 1, problems: differing.map((name) => `${name} differs from the trace`) }
}
