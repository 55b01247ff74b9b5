/** The suite: what the store must bear, and bugs it must not be able to hide. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { diskStateAt } from './disk-state.ts'
import { FAULTS, faultPoints, tryFaults } from './faults.ts'
import { tryPowerCuts } from './power-cuts.ts'
import { type ChildRun, type RunOptions, runChild } from './run-child.ts'
import { type Call, canFail, FOLDER, MARKS } from './trace.ts'
import type { Tried } from './tried.ts'

const LOST = 'was acknowledged and is missing'
/** Missing syncs must show after so many cuts. */
const PLANTED_CUTS = 20

/** How much is tried. */
export interface Size {
  readonly arrivals: number
  /** Points at which the power is cut, and outcomes tried for each. */
  readonly cuts: number
  readonly outcomes: number
  /** Calls that fail, for each kind of fault. */
  readonly faults: number
  /** Syncs that fail before the power is cut, and cuts for each. */
  readonly failedSyncs: number
  readonly cutsAfterFailedSync: number
}

export interface Bench {
  readonly shim: string
  /** A folder the suite may fill. */
  readonly root: string
  readonly seed: number
  readonly size: Size
  /** A run without a fault. */
  readonly sound: ChildRun
}

export interface Case {
  readonly title: string
  /** Part of a problem that must be found, since a bug is planted. */
  readonly mustFind?: string
  readonly run: (bench: Bench) => Promise<Tried>
}

/** Whether what was found is what had to be found. */
export const isAsItMust = ({ mustFind }: Case, { problems }: Tried): boolean =>
  mustFind === undefined ? problems.length === 0 : problems.some((problem) => problem.includes(mustFind))

export async function setUpBench({ shim, root, seed, size }: Omit<Bench, 'sound'>): Promise<Bench> {
  return { shim, root, seed, size, sound: await runChild({ shim, root, arrivals: size.arrivals }) }
}

export const CASES: readonly Case[] = [
  { title: 'the trace tells everything that reached the disk', run: async ({ sound }) => compareWithDisk(sound) },
  { title: 'a power cut takes nothing that was acknowledged', run: (bench) => cutPower(bench, bench.sound) },
  {
    title: 'a power cut takes nothing that was acknowledged, even after a sync that failed',
    run: (bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        fault: FAULTS['one call fails'],
        // SQLite takes no notice of a folder's sync that fails, and what it lost no later one would bring back.
        points: faultPoints(bench.sound.calls, bench.size.failedSyncs, ({ operation, file }) => operation === 'sync' && file !== FOLDER),
        look: (run) => cutPower(bench, run, bench.size.cutsAfterFailedSync),
      }),
  },
  ...Object.entries(FAULTS).map(([name, fault]) => ({
    title: `${name}: what was acknowledged is there, what was refused may come again${fault.ends === 'never' ? '' : ', and the same process goes on'}`,
    run: (bench: Bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        fault,
        points: [
          ...faultPoints(bench.sound.calls, bench.size.faults),
          ...faultPoints(bench.sound.calls, bench.size.faults, ({ operation }) => operation === 'sync'),
        ],
      }),
  })),
  {
    title: 'the suite notices a store that does not sync',
    mustFind: LOST,
    run: async (bench) =>
      cutPower(bench, await runChild({ ...runOptionsOf(bench), planted: { pragmas: 'PRAGMA synchronous = OFF' } }), PLANTED_CUTS),
  },
  {
    title: 'the suite notices a store that syncs at its checkpoints only',
    mustFind: LOST,
    run: async (bench) =>
      cutPower(bench, await runChild({ ...runOptionsOf(bench), planted: { pragmas: 'PRAGMA synchronous = NORMAL' } }), PLANTED_CUTS),
  },
  {
    title: 'the suite notices an acknowledgement that comes before the write',
    mustFind: LOST,
    run: (bench) =>
      tryFaults({
        ...runOptionsOf(bench),
        fault: FAULTS['the disk fails for good'],
        points: [lastWriteOfFirstKept(bench.sound.calls)],
        planted: { acknowledgesEarly: true },
      }),
  },
]

const runOptionsOf = ({ shim, root, size: { arrivals } }: Bench): RunOptions => ({ shim, root, arrivals })

const cutPower = ({ seed, root, size }: Bench, run: ChildRun, cuts = size.cuts): Promise<Tried> =>
  tryPowerCuts(run, { cuts, outcomes: size.outcomes, seed, root })

/** The number of the last write before anything is acknowledged; what follows it is the sync. */
function lastWriteOfFirstKept(calls: readonly Call[]): number {
  const told = calls.findIndex(({ operation, file }) => operation === 'write' && file === MARKS)
  return calls.slice(0, told).filter(canFail).length - 1
}

/** Were a call missed or misread, what was replayed would not be what is there. */
function compareWithDisk({ file, calls }: ChildRun): Tried {
  const replayed = diskStateAt(calls, { after: calls.length, survival: 1, random: () => 0 })
  const differing = ['sluice.db', 'sluice.db-wal', MARKS].filter(
    (name) => Buffer.compare(replayed.get(name) ?? Buffer.alloc(0), readFileSync(join(dirname(file), name))) !== 0,
  )
  return { states: 1, problems: differing.map((name) => `${name} is not what the trace says`) }
}
