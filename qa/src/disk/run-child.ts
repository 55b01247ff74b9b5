/** Runs the child on a disk that is traced and can fail. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ChildOptions } from './child-options.ts'
import { type Marks, parseMarks } from './marks.ts'
import { type Call, MARKS_FILE, parseTrace } from './trace.ts'

const CHILD = join(import.meta.dirname, 'child.ts')
const CHILD_MS_MAX = 60_000
/** Low, so that a short run has many checkpoints, at which the database file itself is written. */
const CHECKPOINT_PAGES = 50

/** A call that fails and how the fault ends. */
export interface Fault {
  /** The number of the call that fails, from 1. */
  readonly at: number
  readonly error: 'EIO' | 'ENOSPC'
  /** Whether a write stores half of its bytes before the next call fails. */
  readonly short?: boolean
  readonly ends: ChildOptions['faultEnds']
}

/** A finished run: its trace and marks. */
export interface ChildRun {
  /** The folder of this run. */
  readonly home: string
  readonly file: string
  readonly calls: readonly Call[]
  readonly marks: Marks
}

/** How the child runs. */
export interface RunOptions {
  readonly shim: string
  /** The parent of the run's folder. */
  readonly root: string
  readonly arrivals: number
  readonly fault?: Fault
  /** A bug to plant. */
  readonly planted?: { readonly pragmas?: string; readonly acknowledgesEarly?: true }
}

/** Rejects if the child ends with an error. */
export async function runChild({ shim, root, arrivals, fault, planted }: RunOptions): Promise<ChildRun> {
  const home = mkdtempSync(join(root, 'run-'))
  const [folder, trace, freed] = [join(home, 'disk'), join(home, 'trace'), join(home, 'freed')]
  mkdirSync(folder)
  const file = join(folder, 'sluice.db')
  const options: ChildOptions = {
    file,
    arrivals,
    pragmas: `PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; ${planted?.pragmas ?? ''}`,
    acknowledgesEarly: planted?.acknowledgesEarly ?? false,
    faultEnds: fault?.ends ?? 'at once',
    freed,
  }
  await promisify(execFile)(process.execPath, [CHILD, JSON.stringify(options)], {
    timeout: CHILD_MS_MAX,
    env: { ...process.env, LD_PRELOAD: shim, DISK_FOLDER: folder, DISK_TRACE: trace, ...(fault && environmentOf(fault, freed)) },
  })
  return { home, file, calls: parseTrace(readFileSync(trace)), marks: parseMarks(readFileSync(join(folder, MARKS_FILE), 'utf8')) }
}

const environmentOf = ({ at, error, short, ends }: Fault, freed: string): NodeJS.ProcessEnv => ({
  DISK_FAIL_AT: String(at),
  DISK_FAIL_WITH: String(constants.errno[error]),
  ...(short && { DISK_FAIL_SHORT: '1' }),
  ...(ends !== 'at once' && { DISK_FAIL_UNTIL: freed }),
})
