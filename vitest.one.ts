import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'
const exclude=[...configDefaults.exclude, '**/*.slow.test.ts', '**/*.postgres.test.ts', '**/*.browser.test.ts']
const ISOLATED = ['packages/hardware-adapter/**', 'packages/mcp/**']
const dirs = globSync(['packages/*/package.json', 'qa/package.json']).map(m=>m.replace('/package.json',''))
export default defineConfig({ test: { maxWorkers: availableParallelism(), maxConcurrency: 40, testTimeout: 60000, hookTimeout: 60000, expect: { poll: { timeout: 20000 } },
 projects: [
  { extends: true as const, test: { name: 'all', isolate: false, include: dirs.map(d=>`${d}/**/*.test.ts`), exclude: [...exclude, ...ISOLATED] } },
  { extends: true as const, test: { name: 'isolated', isolate: true, include: ISOLATED.map(d=>`${d}/*.test.ts`), exclude } },
 ] } })
