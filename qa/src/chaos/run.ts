/** `pnpm chaos --loops 500`: the crash runs by hand, or one of them; with `--all` every scenario besides. Stops by itself. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle, ROOT } from '../daemons/bundle.ts'
import type { Violation } from './history.ts'
import { runLoops } from './run-loops.ts'
import { SCENARIOS } from './scenarios/all-scenarios.ts'
import { runSopLoops } from './sops/run-sop-loops.ts'
import { sopsSummary } from './sops/summary.ts'
import { summary } from './summary.ts'

const USAGE = 'usage: pnpm chaos [--suite messages|sops] [--loops 100] [--seed N] [--all] [--json] [--profile minimal]'
/** A loop takes about a second; what takes so much longer hangs. */
const LOOP_MS_MAX = 6000
const REST_MS_MAX = 240_000

const { values } = parseArgs({
  options: {
    suite: { type: 'string' },
    loops: { type: 'string', default: '100' },
    seed: { type: 'string' },
    all: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    profile: { type: 'string', default: 'minimal' },
  },
})
const { profile } = values
const [loops, seed] = [Number(values.loops), Number(values.seed ?? Math.floor(Math.random() * 2 ** 31))]
/** Without `--suite`, all of them. */
const suites = values.suite === undefined ? ['messages', 'sops'] : [values.suite]
if (!Number.isInteger(loops) || loops < 0 || !Number.isInteger(seed) || !suites.every((suite) => ['messages', 'sops'].includes(suite))) {
  console.error(USAGE)
  process.exit(2)
}
if (!existsSync(bundle(profile))) spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs'), profile], { stdio: ['ignore', 2, 2] })

const say = (text: string): void => void process.stderr.write(text)
const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort(new Error('interrupted')))

/** Plays in a directory of its own, which stays if something is wrong; tells what came of it. */
async function play<Result extends { readonly violations: readonly Violation[] }>(
  name: string,
  msMax: number,
  run: (options: { profile: string; seed: number; dir: string; signal: AbortSignal }) => Promise<Result>,
): Promise<Result | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  const fail = (text: string): void => {
    say(`${name}: ${text}; seed ${seed}, kept in ${dir}\n`)
    process.exitCode = 1
  }
  try {
    const result = await run({ profile, seed, dir, signal: AbortSignal.any([interrupted.signal, AbortSignal.timeout(msMax)]) })
    if (result.violations.length > 0) fail(`${result.violations.length} violations`)
    else rmSync(dir, { recursive: true, force: true })
    return result
  } catch (error) {
    fail(`ended early: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

const told: Record<string, unknown> = { seed }
const msMax = loops * LOOP_MS_MAX + REST_MS_MAX
const onLoop = (loop: number, count: number): void => say(`\r${loop} of ${loops} loops, ${count} ${loop < loops ? '' : '\n'}`)
if (loops > 0 && suites.includes('messages')) {
  say(`messages, seed ${seed}\n`)
  const result = await play('messages', msMax, (options) => runLoops({ ...options, loops, onLoop }))
  told.messages = result && { loops, ...summary(result), violations: result.violations }
}
if (loops > 0 && suites.includes('sops') && !interrupted.signal.aborted) {
  say(`sops, seed ${seed}\n`)
  const result = await play('sops', msMax, (options) => runSopLoops({ ...options, loops, onLoop }))
  told.sops = result && { loops, ...sopsSummary(result), violations: result.violations }
}
for (const [name, scenario] of values.all ? Object.entries(SCENARIOS) : []) {
  if (interrupted.signal.aborted) break
  say(`${name}\n`)
  told[name] = await play(name, REST_MS_MAX, scenario)
}
if (values.json) console.log(JSON.stringify(told, null, 2))
else console.dir(told, { depth: null })
