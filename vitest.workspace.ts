// The test set-up of the whole workspace. The files of all packages share the workers and what these have loaded.
import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

// Files whose name ends with .slow.test.ts take long, or need more than npm installs: only `pnpm test:slow` runs them.
const SLOW = '**/*.slow.test.ts'
// Files whose name ends with .postgres.test.ts start a PostgreSQL: only `pnpm test:postgres` runs them.
const POSTGRES = '**/*.postgres.test.ts'
// Files whose name ends with .daemons.test.ts start or kill many daemons: only `pnpm test:daemons` runs them, and the long form of chaos.test.ts.
const DAEMONS = ['**/*.daemons.test.ts', '**/chaos/chaos.test.ts']
const { SLUICE_SLOW, SLUICE_POSTGRES, SLUICE_DAEMONS } = process.env
const only = SLUICE_SLOW === '1' ? [SLOW] : SLUICE_POSTGRES === '1' ? [POSTGRES] : SLUICE_DAEMONS === '1' ? DAEMONS : undefined
const left = [...configDefaults.exclude, SLOW, POSTGRES, '**/*.daemons.test.ts']
// These files count the objects of the whole heap, which takes seconds in a worker that has loaded much.
const HEAP = ['packages/delivery/src/deliveries.test.ts', 'packages/kit/src/signal-scope.test.ts']
const all = { include: ['packages/*/src/**/*.test.ts', 'qa/src/**/*.test.ts'], exclude: [...left, ...HEAP] }
const selections = only
  ? [{ name: 'all', include: only }]
  : [
      { name: 'all', ...all },
      { name: 'heap', include: HEAP },
    ]
// A worker loads each module once for all test files that it runs: a test, and each helper with hooks, must undo what it changes.
const projects = selections.map((selection) => ({ extends: true as const, test: { ...selection, isolate: false } }))

// Many tests wait for a daemon, a browser or a sandbox of their own: one worker more than processors uses the time in which others wait.
const maxWorkers = only ? 1 : availableParallelism() + 1

// A condition that a test waits for may take long on a busy machine.
const expectation = { poll: { timeout: 20_000 } }

// Tests of one file that run at the same time wait for the same daemon, most of the time.
const maxConcurrency = 40

// Libraries that read the proxy of the machine, such as axios, reach the fakes on loopback directly. Other addresses keep the proxy.
const { no_proxy = '', NO_PROXY = no_proxy } = process.env
const noProxy = [NO_PROXY, '127.0.0.1', 'localhost'].filter((entry) => entry !== '').join(',')
const env = { NO_PROXY: noProxy, no_proxy: noProxy }

export default defineConfig({
  test: { env, projects, maxWorkers, maxConcurrency, testTimeout: only ? 600_000 : 60_000, hookTimeout: 60_000, expect: expectation },
})
