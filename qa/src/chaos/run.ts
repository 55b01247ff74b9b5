/** `pnpm chaos --loops 500`: plays crash runs by hand, and with `--all` every scenario too. Ends by itself. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '@sluice/store-postgres/testing/postgres-server'
import { previousRelease } from '../cluster/previous-release.ts'
import { clusterSummary, runCluster } from '../cluster/run-cluster.ts'
import { bundle, ROOT } from '../daemons/bundle.ts'
import { runBurst } from './burst/run-burst.ts'
import type { Violation } from './history.ts'
import { runLinks } from './links/run-links.ts'
import { readOptions } from './options.ts'
import { PLAYS } from './promises/all-plays.ts'
import { runPlay } from './promises/run-play.ts'
import { runLoops } from './run-loops.ts'
import { SCENARIOS } from './scenarios/all-scenarios.ts'
import { runSopLoops } from './sops/run-sop-loops.ts'
import { sopsSummary } from './sops/summary.ts'
import type { RunOptions } from './stage.ts'
import { WITH_POSTGRES } from './start-kinds.ts'
import { summary } from './summary.ts'

/** A loop takes about a second; a run that needs this much longer hangs. */
const LOOP_MS_MAX = 6000
const REST_MS_MAX = 240_000
/** A connection that fell silent is replaced, and the messages since then are read, within this time after the cut. */
const LINKS_MS_MAX = 600_000
const BURST_MS_MAX = 600_000
/** A play waits for the end of its work for as long as anything moves. */
const PLAY_REST_MS_MAX = 1_800_000
const VIOLATIONS_SHOWN = 40
/** For the start of a cluster, its last fault, the end of its work and the checks. */
const CLUSTER_REST_MS_MAX = 600_000

const options = readOptions(process.argv.slice(2))
const { seed, loops } = options
const usesPostgres = options.store === 'postgres' || options.suites.includes('cluster')
const profile = usesPostgres ? `${options.profile}${WITH_POSTGRES}` : options.profile
const build = usesPostgres ? [options.profile, '--features', 'store-postgres', '--name', profile] : [profile]
// A bundle with PostgreSQL is built for each run, because no other command rebuilds it after a change of the sources.
if (usesPostgres || !existsSync(bundle(profile)))
  spawnSync(process.execPath, [join(ROOT, 'scripts/build.mjs'), ...build], { stdio: ['ignore', 2, 2] })

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
  const server = usesPostgres && !isWanted('cluster') ? await startPostgres({ inMemory: true }) : undefined
  const signal = AbortSignal.any([interrupted.signal, AbortSignal.timeout(msMax)])
  try {
    const result = await run({ profile, seed, dir, signal, ...(server && { database: server.url }) })
    if (result.violations.length > 0) fail(`${result.violations.length} violations`)
    else rmSync(dir, { recursive: true, force: true })
    return result
  } catch (error) {
    fail(`ended early: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  } finally {
    await server?.stop()
  }
}

const report: Record<string, unknown> = { seed }
const isWanted = (suite: string): boolean => options.suites.includes(suite) && !interrupted.signal.aborted
const msMax = loops * LOOP_MS_MAX + REST_MS_MAX
const onLoop =
  (items: string) =>
  (loop: number, count: number): void =>
    say(`\r${loop} of ${loops} loops, ${count} ${items} ${loop < loops ? '' : '\n'}`)
if (loops > 0 && isWanted('messages')) {
  say(`messages, seed ${seed}\n`)
  const result = await play('messages', msMax, (run) => runLoops({ ...run, loops, onLoop: onLoop('messages') }))
  report.messages = result && { loops, ...summary(result), violations: result.violations }
}
if (loops > 0 && isWanted('sops')) {
  say(`sops, seed ${seed}\n`)
  const result = await play('sops', msMax, (run) => runSopLoops({ ...run, loops, onLoop: onLoop('events') }))
  report.sops = result && { loops, ...sopsSummary(result), violations: result.violations }
}
for (const cut of isWanted('links') ? options.cuts : []) {
  const { seconds = 10, channels: only, messages = 20 } = options
  say(`links, cut for ${seconds} s: ${cut}\n`)
  const name = `links ${cut}`
  const run = (stage: RunOptions) => runLinks({ ...stage, cut, cutMs: seconds * 1000, messages, only })
  const result = await play(name, seconds * 1000 + LINKS_MS_MAX, run)
  report[name] = result && { seconds, ...result }
  if (result && !options.json) console.table(result.rows.map(({ gaps, ...row }) => ({ ...row, gaps: gaps.join('; ') })))
  if (result && !options.json && result.violations.length > 0) console.table(result.violations)
}
for (const [name, start] of Object.entries(PLAYS)) {
  if (!isWanted(name)) continue
  say(`${name}, seed ${seed}\n`)
  const playMsMax = loops * LOOP_MS_MAX + PLAY_REST_MS_MAX
  const result = await play(name, playMsMax, (run) => runPlay({ ...run, loops, start, onLoop: (loop) => onLoop('lives')(loop, loop) }))
  report[name] = result && { loops, ...result, violations: result.violations.slice(0, VIOLATIONS_SHOWN) }
  if (result && !options.json) console.table(result.rows)
}
if (isWanted('burst')) {
  const { messages = 1000, kills } = options
  const bursts: unknown[] = []
  for (const channel of options.channels) {
    if (interrupted.signal.aborted) break
    const result = await play(`burst ${channel}`, BURST_MS_MAX, (run) => runBurst({ ...run, channel, messages, kills }))
    if (result) bursts.push(result.violations.length > 0 ? { ...result.row, violations: result.violations } : result.row)
    say(`burst ${channel}: ${result ? `${result.row.seconds} s` : 'failed'}\n`)
  }
  report.burst = bursts
  if (!options.json) console.table(bursts)
}
if (isWanted('cluster')) {
  const { seconds = 3600, messages = 100_000, rate, faults, kinds } = options
  const previous = options.previous ? await previousRelease('full') : undefined
  if (previous && 'missing' in previous) throw new Error(previous.missing)
  const onProgress = (count: number, fault: string): void => say(`${count} messages; ${fault}\n`)
  const run = (stage: RunOptions) =>
    runCluster({
      ...stage,
      messages,
      seconds,
      rate,
      onProgress,
      ...(previous && { previous: previous.program }),
      ...(faults && { faults }),
      ...(kinds && { kinds }),
    })
  const result = await play('cluster', seconds * 1000 + CLUSTER_REST_MS_MAX, run)
  report.cluster = result && clusterSummary(result)
}
for (const [name, scenario] of options.all ? Object.entries(SCENARIOS) : []) {
  if (interrupted.signal.aborted) break
  say(`${name}\n`)
  report[name] = await play(name, REST_MS_MAX, scenario)
}
if (options.out !== undefined) writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`)
if (options.json) console.log(JSON.stringify(report, null, 2))
else if (!isWanted('links') && !isWanted('burst')) console.dir(report, { depth: null })
else console.log(`seed ${seed}`)
