import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { auditHash, type Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { startRuns } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Database } from '../connection/database.ts'
import { openStore } from '../open-store.ts'

let folder: string
let file: string
let store: Store
let intruder: Database
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'verify-audit-'))
  file = join(folder, 'sluice.db')
  const { clock, log } = testHost()
  store = openStore({ file, clock, log })
  intruder = new Database(file)
  await startRuns(store, ['r1', 'r2', 'r3', 'r4', 'r5'])
})
afterEach(async () => {
  intruder.close()
  await store.close()
  rmSync(folder, { recursive: true })
})

const TRIGGERS = ['sop_audit_keeps_records', 'sop_audit_keeps_all', 'sop_audit_keeps_order']
const COLUMNS = 'kind, at, sop, run, step, by, reason, detail_json, previous, hash'

/** Changes the file like an attacker who knows the triggers of the log. */
function tamper(sql: string): void {
  for (const trigger of TRIGGERS) intruder.exec(`DROP TRIGGER ${trigger}`)
  intruder.exec(sql)
}

const broken = async () => (await store.sops.verify()).broken

test('triggers reject changes, deletions and replacements', () => {
  const attempts = [
    "UPDATE sop_audit SET by = 'nobody' WHERE number = 2",
    'UPDATE sop_audit SET number = 9 WHERE number = 2',
    'DELETE FROM sop_audit WHERE number = 5',
    'DELETE FROM sop_audit',
    `INSERT OR REPLACE INTO sop_audit (number, ${COLUMNS}) SELECT 2, ${COLUMNS} FROM sop_audit WHERE number = 3`,
    `REPLACE INTO sop_audit (number, ${COLUMNS}) SELECT 5, ${COLUMNS} FROM sop_audit WHERE number = 3`,
    `INSERT INTO sop_audit (${COLUMNS}) SELECT ${COLUMNS} FROM sop_audit WHERE number = 3`,
    `INSERT INTO sop_audit (number, ${COLUMNS}) SELECT 0, ${COLUMNS} FROM sop_audit WHERE number = 3`,
  ]
  for (const attempt of attempts) expect(() => intruder.exec(attempt), attempt).toThrow('the audit log is append-only')
})

const CHANGES = {
  kind: "'run_failed'",
  at: '999',
  sop: "'other'",
  run: "'r9'",
  step: '7',
  by: "'cli:somebody'",
  reason: "'because'",
  detail_json: '\'{"a": 1}\'',
}

for (const [column, value] of Object.entries(CHANGES)) {
  test(`a record with a changed ${column} is reported`, async () => {
    tamper(`UPDATE sop_audit SET ${column} = ${value} WHERE number = 3`)
    expect(await broken()).toEqual({ number: 3, why: 'Record 3 was changed.' })
    expect(await store.sops.verify()).toMatchObject({ records: 5 })
  })
}

test('a record changed together with its hash breaks the next record', async () => {
  const [row] = await store.sops.audit({ limit: 1, after: 2 })
  if (!row) throw new Error('the record is not there')
  const { hash: _, ...changed } = { ...row, by: 'cli:somebody' }
  tamper(`UPDATE sop_audit SET by = 'cli:somebody', hash = '${auditHash(changed, '{}')}' WHERE number = 3`)
  expect(await broken()).toEqual({ number: 4, why: 'Record 4 does not follow from the previous record.' })
})

test('missing records are reported, the first and the last included', async () => {
  tamper('DELETE FROM sop_audit WHERE number = 3')
  expect(await broken()).toEqual({ number: 3, why: 'Record 3 is missing.' })
  intruder.exec('DELETE FROM sop_audit WHERE number IN (1, 2)')
  expect(await broken()).toEqual({ number: 1, why: 'Records 1 to 3 are missing.' })
})

test('a truncated log is reported, also after new records', async () => {
  tamper('DELETE FROM sop_audit WHERE number > 3')
  expect(await broken()).toEqual({ number: 4, why: 'Records 4 to 5 are missing.' })
  await startRuns(store, ['r6'])
  expect(await broken()).toEqual({ number: 4, why: 'Records 4 to 5 are missing.' })
  intruder.exec('DELETE FROM sop_audit')
  expect(await store.sops.verify()).toMatchObject({ records: 0, broken: { number: 1, why: 'Records 1 to 6 are missing.' } })
})

test('swapped records are reported', async () => {
  tamper(`
    UPDATE sop_audit SET number = 99 WHERE number = 2;
    UPDATE sop_audit SET number = 2 WHERE number = 3;
    UPDATE sop_audit SET number = 3 WHERE number = 99`)
  expect(await broken()).toMatchObject({ number: 2, why: 'Record 2 does not follow from the previous record.' })
})

test('a record appended by other means is reported', async () => {
  intruder.exec(`INSERT INTO sop_audit (number, ${COLUMNS}) SELECT 6, ${COLUMNS} FROM sop_audit WHERE number = 5`)
  expect(await broken()).toMatchObject({ number: 6, why: 'Record 6 does not follow from the previous record.' })
  await startRuns(store, ['r6'])
  expect(await store.sops.verify()).toMatchObject({ records: 7, broken: { number: 6 } })
})

test.each([0, -5])('a record inserted with number %d is reported', async (number) => {
  tamper(`INSERT INTO sop_audit (number, ${COLUMNS}) SELECT ${number}, ${COLUMNS} FROM sop_audit WHERE number = 3`)
  expect(await broken()).toEqual({ number, why: `Record ${number} was inserted.` })
  await startRuns(store, ['r6'])
  expect(await store.sops.verify()).toMatchObject({ records: 7, broken: { number } })
})

test('a changed record in a long log is reported', async () => {
  const ids = Array.from({ length: 1_500 }, (_, at) => `more ${at}`)
  await startRuns(store, ids)
  tamper("UPDATE sop_audit SET by = 'nobody' WHERE number = 1234")
  expect(await store.sops.verify()).toMatchObject({ records: 1_505, broken: { number: 1234 } })
})
