/** `sluice sop status` on a store that no daemon has open: a run by its id or a prefix of it. */
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { openStore } from '@sluice/store'
import { startRuns } from '@sluice/testkit/store-rules/sop-samples'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const { dir, dispose } = scratch()
const status = (id: string) => sluiceWith([])('sop', 'status', id, '--json', '--data-dir', dir)

beforeAll(async () => {
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
  await startRuns(store, ['run-a1', 'run-a2', 'run-b', 'run-b-longer'])
  await store.close()
})
afterAll(dispose)

describe('sluice sop status', () => {
  test('prefers an exact id to a longer id with the same beginning', async () => {
    expect(JSON.parse((await status('run-b')).out)).toMatchObject({ run_id: 'run-b' })
  })

  test('finds a run by a prefix that no other run shares', async () => {
    expect(JSON.parse((await status('run-b-')).out)).toMatchObject({ run_id: 'run-b-longer' })
  })

  test.each([
    ['run-a', 2, 'invalid_request', 'run-a2, run-a1'],
    ['run-c', 1, 'not_found', "There is no run run-c: 'sluice sop runs' lists them"],
    ['', 1, 'not_found', 'There is no run'],
  ])('refuses %j', async (id, code, error, says) => {
    const ran = await status(id)
    expect(ran.code).toBe(code)
    expect(JSON.parse(ran.err)).toMatchObject({ code: error, error: expect.stringContaining(says) })
  })
})

test('sluice sop run --wait fails without a daemon before it starts a run', async () => {
  const ran = await sluiceWith([])('sop', 'run', 'deploy', '--wait', '5', '--data-dir', dir)
  expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringContaining('--wait needs a daemon, and none is running') })
})
