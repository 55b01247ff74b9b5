// The runs that are too long for CI: `pnpm nightly`, before each release. All of them run, and the last lines name the failed ones.
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const vitest = (...environment) => ['exec', ...environment, 'vitest', 'run', '--config', 'vitest.workspace.ts']
const RUNS = {
  'npm test with all its random tries': vitest('SLUICE_NIGHTLY=1'),
  'every regular expression judged again': [...vitest('SLUICE_NIGHTLY=1', 'SLUICE_SLOW=1'), 'qa/src/linear-patterns'],
  'crashes of a daemon': [...vitest('SLUICE_NIGHTLY=1', 'SLUICE_DAEMONS=1'), 'qa/src/chaos/chaos.daemons.test.ts'],
  'crashes amid the plays of people and platforms': [
    ...vitest('SLUICE_NIGHTLY=1', 'SLUICE_DAEMONS=1'),
    'qa/src/chaos/promises/promises.daemons.test.ts',
  ],
  'crashes of a cluster': ['exec', 'node', 'qa/src/chaos/run.ts', '--suite', 'cluster', '--seconds', '600'],
  'a million mutated requests for each signing scheme': ['exec', 'node', 'qa/src/fuzz/run.ts'],
  'the suites with PostgreSQL': vitest('SLUICE_POSTGRES=1'),
  'the suites with a browser': ['browser', 'browser.test'],
  'a machine without compilers': ['exec', 'node', 'scripts/check-bare-machine.mjs'],
  'virtual machines': ['exec', 'node', 'qa/src/vm/run.ts'],
  'failing disks': ['exec', 'node', 'qa/src/disk/run.ts'],
  'planted bugs': ['exec', 'node', 'scripts/mutants.mjs'],
}

const failed = Object.entries(RUNS).filter(([name, args]) => {
  console.log(`[nightly] ${name}`)
  return spawnSync(process.execPath, [join(ROOT, 'scripts/tasks.mjs'), ...args], { cwd: ROOT, stdio: 'inherit' }).status !== 0
})
for (const [name] of failed) console.error(`[nightly] FAILED: ${name}`)
console.log(`[nightly] ${Object.keys(RUNS).length - failed.length} of ${Object.keys(RUNS).length} runs passed`)
process.exitCode = failed.length === 0 ? 0 : 1
