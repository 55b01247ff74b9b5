// The test set-up of the whole workspace. The files of all packages share the workers, and the libraries that these have loaded.
import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'
import { runReport } from './qa/src/worker/run-report.ts'

// Files whose name ends with .slow.test.ts take long, or need more than npm installs: only `pnpm test:slow` runs them.
const SLOW = '**/*.slow.test.ts'
// Files whose name ends with .postgres.test.ts start a PostgreSQL: only `pnpm test:postgres` runs them.
const POSTGRES = '**/*.postgres.test.ts'
// Files whose name ends with .daemons.test.ts start or kill many daemons: only `pnpm test:daemons` runs them.
const DAEMONS = '**/*.daemons.test.ts'
const { SLUICE_SLOW, SLUICE_POSTGRES, SLUICE_DAEMONS, SLUICE_BROWSER, SLUICE_TEST_REPORT, SLUICE_SHUFFLE } = process.env
// Without SEED, the first reading of this file draws one; a project reads the file again.
process.env.SEED ||= String(randomInt(1, 2 ** 31))
const seed = Number(process.env.SEED)
if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 31)
  throw new Error(`SEED is '${process.env.SEED}', and has to be a whole number from 0 to ${2 ** 31 - 1}`)
const shuffles = SLUICE_SHUFFLE === '1'

const only = SLUICE_SLOW === '1' ? [SLOW] : SLUICE_POSTGRES === '1' ? [POSTGRES] : SLUICE_DAEMONS === '1' ? [DAEMONS] : undefined
const left = [...configDefaults.exclude, SLOW, POSTGRES, DAEMONS]
// These files run in a process of their own: they count the objects of the whole heap, lower its priority, or load a library that changes globals.
const APART = [
  'packages/channel-chatapp-web/src/{conformance,link,xeddsa}.test.ts',
  'packages/channel-fedchat/src/{conformance,encryption,interop,crypto/indexed-db}.test.ts',
  'packages/channel-dingtalk/src/official-sdk.test.ts',
  'packages/channel-qq/src/independent.test.ts',
  'packages/cli/src/api/next-to-daemon.test.ts',
  'packages/cli/src/commands/backup.test.ts',
  'packages/delivery/src/deliveries.test.ts',
  'packages/hardware-boards/src/{firmware-micropython,repl/main-file}.test.ts',
  'packages/kit/src/time/signal-scope.test.ts',
  'packages/plugins-wasm/src/index.test.ts',
  'packages/tool-browser-native/src/index.test.ts',
  'packages/tool-browser/src/native/native-driver.test.ts',
  'packages/tool-pdf/src/{conformance,hostile,pdf-read,pdf-reader}.test.ts',
  'packages/webauthn/src/{browser,daemon,register.negative,sign-in.negative,webauthn}.test.ts',
  'qa/src/{channels,channel-guides}.test.ts',
  // Playwright changes `fs` and `process`. Without a browser, these files have nothing to do.
  ...(SLUICE_BROWSER ? ['{packages,qa}/**/src/**/*.browser.test.ts'] : []),
]
const ALL = ['packages/*/src/**/*.test.ts', 'qa/src/**/*.test.ts']
// The other files of a worker share its process and the libraries, and nothing else: see each-file.ts.
const selections = only
  ? [{ name: 'all', include: only, isolate: true }]
  : [
      // Vitest runs projects in the order of their names. The many short files come last, so that no worker waits for one long file at the end.
      { name: 'apart', include: APART, exclude: left, isolate: true },
      { name: 'together', include: ALL, exclude: [...left, ...APART], isolate: false },
    ]
const projects = selections.map((selection) => ({
  extends: true as const,
  test: {
    ...selection,
    setupFiles: selection.isolate ? ['qa/src/worker/seed.ts'] : ['qa/src/worker/seed.ts', 'qa/src/worker/each-file.ts'],
  },
}))

// Many tests wait for a daemon, a browser or a sandbox of their own: one worker more than processors uses the time in which others wait. Most
// daemons of a suite wait, too, but other suites run beside theirs.
const maxWorkers = SLUICE_DAEMONS === '1' ? 2 : only ? 1 : availableParallelism() + 1

// A condition that a test waits for may take long on a busy machine.
const expectation = { poll: { timeout: 20_000, interval: 10 } }

// Tests of one file that run at the same time wait for the same daemon, most of the time.
const maxConcurrency = 40

// Libraries that read the proxy of the machine, such as axios, reach the fakes on loopback directly. Other addresses keep the proxy.
const { no_proxy = '', NO_PROXY = no_proxy } = process.env
const noProxy = [NO_PROXY, '127.0.0.1', 'localhost'].filter((entry) => entry !== '').join(',')
// A test that starts vitest itself starts a run of its own.
const env = { NO_PROXY: noProxy, no_proxy: noProxy, SLUICE_TEST_SEED: String(seed), SLUICE_TEST_REPORT: '' }

export default defineConfig({
  test: {
    env,
    projects,
    // No module uses `require` or `__dirname`, and making them for each module of each file takes seconds.
    injectCjsGlobals: false,
    maxWorkers,
    maxConcurrency,
    reporters: ['default', runReport(import.meta.dirname, { seed, file: SLUICE_TEST_REPORT, shuffles })],
    sequence: { seed, shuffle: shuffles },
    testTimeout: only ? 600_000 : 60_000,
    hookTimeout: 60_000,
    expect: expectation,
  },
})
