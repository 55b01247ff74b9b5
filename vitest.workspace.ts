// The test set-up of the whole workspace: every package is a project, found by glob so that none is forgotten.
import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename, dirname } from 'node:path'
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
const selection = only ? { include: only, testTimeout: 600_000 } : { exclude: left }

// A worker loads each module once for all its test files, which saves a sixth of the time: a test must undo what it changes. The
// helpers of these packages clean up after the file that loads them, so each of their files loads them anew.
const ISOLATED = ['hardware-adapter', 'mcp']

const projects = globSync(['packages/*/package.json', 'qa/package.json']).map((manifest) => {
  const root = dirname(manifest)
  return {
    extends: true as const,
    root,
    test: { name: `@sluice/${basename(root)}`, isolate: ISOLATED.includes(basename(root)), ...selection },
  }
})

// Many tests wait for a daemon, a browser or a sandbox of their own: one worker more than processors uses the time in which others wait.
const maxWorkers = only ? 1 : availableParallelism() + 1

// A condition that a test waits for may take long on a busy machine.
const expectation = { poll: { timeout: 20_000 } }

// Tests of one file that run at the same time wait for the same daemon, most of the time.
const maxConcurrency = 40

export default defineConfig({
  test: { projects, maxWorkers, maxConcurrency, testTimeout: 60_000, hookTimeout: 60_000, expect: expectation },
})
