/** `npm start`, with a stand-in for the built daemon. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-start-'))
  mkdirSync(join(root, 'dist/full'), { recursive: true })
  cpSync(join(ROOT, 'scripts/tasks.mjs'), join(root, 'scripts/tasks.mjs'))
  writeFileSync(join(root, 'dist/full/sluice.mjs'), 'console.log(JSON.stringify([process.argv.slice(2), process.env]))')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('the daemon gets the environment as it is: a variable would outrank a configuration file that is written while it runs', () => {
  const env = { HOME: root, PATH: process.env.PATH }
  const { stdout } = spawnSync(process.execPath, [join(root, 'scripts/tasks.mjs'), 'start', '--port', '0'], { env, encoding: 'utf8' })
  expect(JSON.parse(stdout)).toEqual([['daemon', '--port', '0'], env])
})
