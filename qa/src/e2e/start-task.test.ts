/** `npm start`, with a program in place of the built daemon that prints its environment. */
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
  cpSync(join(ROOT, 'scripts'), join(root, 'scripts'), { recursive: true })
  writeFileSync(join(root, 'dist/full/sluice.mjs'), 'console.log(JSON.stringify([process.argv.slice(2), process.env]))')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

// An added variable would take precedence over a configuration file that is written later.
test('passes the environment to the daemon unchanged', () => {
  const env = { HOME: root, PATH: process.env.PATH }
  const { stdout } = spawnSync(process.execPath, [join(root, 'scripts/tasks.mjs'), 'start', '--port', '0'], { env, encoding: 'utf8' })
  expect(JSON.parse(stdout)).toEqual([['daemon', '--port', '0'], env])
})
