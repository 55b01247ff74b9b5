/** Runs the program with a simulated robot as a process, and reads the journal of its motors. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { SimNote } from '../sim/sim-body.ts'
import type { RobotJob } from './robot-daemon.ts'

const PROGRAM = fileURLToPath(new URL('./robot-daemon.ts', import.meta.url))
const LINE_MS_MAX = 20_000

export interface RobotDaemon extends AsyncDisposable {
  readonly pid: number
  /** Resolves with the rest of the first line that begins with `begins`. Rejects after 20 seconds. */
  line(begins: string): Promise<string>
  kill(signal: NodeJS.Signals): void
  /** Returns the notes of the simulator so far. */
  journal(): readonly SimNote[]
}

/** The machine's monotonic clock, as in the journal. */
export const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6

export function runRobotDaemon(job: Omit<RobotJob, 'script'> & { readonly estopAfterMs?: number }): RobotDaemon {
  const folder = mkdtempSync(join(tmpdir(), 'robot-'))
  const journal = join(folder, 'journal')
  const { estopAfterMs, ...rest } = job
  const script = { journal, ...(estopAfterMs !== undefined && { estopAfterMs }) }
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify({ ...rest, script })], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  const waiting = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    for (const look of waiting) look()
  })
  if (child.pid === undefined) throw new Error('the daemon did not start')
  return {
    pid: child.pid,
    line(begins) {
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const look = () => {
        const found = lines.find((line) => line.startsWith(begins))
        if (found !== undefined) resolve(found.slice(begins.length).trim())
      }
      const late = setTimeout(() => reject(new Error(`no line '${begins}' among: ${lines.join(' | ')}`)), LINE_MS_MAX)
      waiting.add(look)
      look()
      return promise.finally(() => {
        clearTimeout(late)
        waiting.delete(look)
      })
    },
    kill: (signal) => void child.kill(signal),
    journal: () =>
      readFileSync(journal, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as SimNote),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
