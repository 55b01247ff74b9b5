import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeRecord } from '@sluice/backup'
import { backupSection, parseConfig } from '@sluice/config'
import { createLogger } from '@sluice/runtime/log'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startBackups } from './backup-schedule.ts'

const TIMEOUT = { timeout: 60_000 }
const HOUR_MS = 3_600_000
const STARTED_MS = Date.parse('2030-01-01T12:00:00Z')
/** Replaces the command line: notes its arguments, and prints like `sluice backup --json`. */
const PROGRAM =
  'require("node:fs").appendFileSync("made", process.argv.slice(1).join(" ") + "\\n"); console.log(JSON.stringify({ file: "x", bytes: 1 }))'

let dataDir: string
let clock: TestClock
let ended: AbortController
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'backup-schedule-'))
  clock = testClock(STARTED_MS)
  ended = new AbortController()
})
afterEach(() => {
  ended.abort()
  rmSync(dataDir, { recursive: true, force: true })
})

const made = (): string[] => (existsSync(join(dataDir, 'made')) ? readFileSync(join(dataDir, 'made'), 'utf8').trim().split('\n') : [])
const note = (atMs: number): void =>
  writeRecord(dataDir, {
    last: { at: new Date(atMs).toISOString(), file: 'x', bytes: 1, encrypted: false, with_secrets: false },
    failure: null,
  })

async function start(schedule: string, program = PROGRAM): Promise<void> {
  const source = { configFile: join(dataDir, 'config.toml'), dataDir, features: [], env: {} }
  const config = await parseConfig(source, `[backup]\nschedule = "${schedule}"\n`)
  expect(config.core(backupSection).schedule).toBe(schedule)
  const log = createLogger({ secrets: () => [], level: 'error', format: 'json', stream: { write: () => true } as never, clock })
  const runtime = { clock, config: () => config, dataDir, log, startedAtMs: clock.nowMs() }
  startBackups(runtime, { ...source, program: [process.execPath, '-e', program, '--'] }, ended.signal)
}

test('makes one backup at each instant of the schedule, by the command line', TIMEOUT, async () => {
  await start('0 3 * * *')
  await clock.advance(14 * HOUR_MS)
  expect(made()).toEqual([])
  await clock.advance(HOUR_MS + 60_000)
  await vi.waitFor(() => expect(made()).toHaveLength(1), TIMEOUT)
  expect(made()[0]).toBe(`backup --json --data-dir ${dataDir} --config ${join(dataDir, 'config.toml')}`)
})

test('makes up for a backup that was missed while no daemon ran', TIMEOUT, async () => {
  note(STARTED_MS - 30 * HOUR_MS)
  await start('0 3 * * *')
  await clock.advance(60_000)
  await vi.waitFor(() => expect(made()).toHaveLength(1), TIMEOUT)
})

test('makes none before its time, and a configuration with another schedule is refused', TIMEOUT, async () => {
  note(STARTED_MS - HOUR_MS)
  await start('0 3 * * *')
  await clock.advance(2 * HOUR_MS)
  expect(made()).toEqual([])
  await expect(start('often')).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining('backup.schedule') })
})
