/** `pnpm chaos --loops 500`: plays one or both crash runs by hand, and with `--all` every scenario too. Ends by itself. */
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
import type { RunOptions } from './stage.ts'
import { summary } from './summary.ts'

const USAGE = 'usage: pnpm chaos [--suite messages|sops] [--loops 100] [--seed N] [--all] [--json] [--profile minimal]'
/** A loop takes about a second; a run that needs this much longer hangs. */
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
/** Without `--suite`, all suites. */
const suites = values.suite === undefined ? ['messages', 'sops'] : [values.suite]
if (!Number.isInteger(loops) || loops < 0 || !Number.isInteger(seed) || !suites.every((suite) => ['messages', 'sops'].includes(suite))) {
  console.error(USAGE)
  process.exit(2)
}
if (!existsSync(bundle(profile))) spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs'), profile], { stdio: ['ignore', 2, 2] })

const say = (text: string): void => void process.stderr.write(text)
const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort(new Error('interrupted')))

/** Plays in a directory of its own, which is kept if a rule is broken. Resolves to undefined if the run ended early. */
async function play<Result extends { readonly violations: readonly Violation[] }>(
  name: string,
  msMax: number,
  run: (options: RunOptions) => Promise<Result>,
): Promise<Result | undefined> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  const fail = (text: string): void => {
    say(`${name}: ${text} (seed ${seed}; log and history: ${dir})\n`)
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

const report: Record<string, unknown> = { seed }
const msMax = loops * LOOP_MS_MAX + REST_MS_MAX
const onLoop =
  (items: string) =>
  (loop: number, count: number): void =>
    say(`\r${loop} of ${loops} loops, ${count} ${items} ${loop < loops ? '' : '\n'}`)
if (loops > 0 && suites.includes('messages')) {
  say(`messages, seed ${seed}\n`)
  const result = await play('messages', msMax, (options) => runLoops({ ...options, loops, onLoop: onLoop('messages') }))
  report.messages = result && { loops, ...summary(result), violations: result.violations }
}
if (loops > 0 && suites.includes('sops') && !interrupted.signal.aborted) {
  say(`sops, seed ${seed}\n`)
  const result = await play('sops', msMax, (options) => runSopLoops({ ...options, loops, onLoop: onLoop('events') }))
  report.sops = result && { loops, ...sopsSummary(result), violations: result.violations }
}
for (const [name, scenario] of values.all ? Object.entries(SCENARIOS) : []) {
  if (interrupted.signal.aborted) break
  say(`${name}\n`)
  report[name] = await play(name, REST_MS_MAX, scenario)
}
if (values.json) console.log(JSON.stringify(report, null, 2))
else console.dir(report, { depth: null })
