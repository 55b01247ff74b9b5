import type { SopRun } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { findRun } from './find-run.ts'

const rows = ['run-a1', 'run-a2', 'run-b', 'run-b-longer'].map((id) => ({ id }) as SopRun)
const sops = { get: async (id: string) => rows.find((run) => run.id === id), runs: async () => rows }
const found = async (id?: string) => (await findRun({ sops }, id)).id

test('a run is found by its whole id, also where another begins with it', async () => {
  expect(await found('run-b')).toBe('run-b')
})

test('a run is found by a beginning that no other shares', async () => {
  expect(await found('run-b-')).toBe('run-b-longer')
})

test('a beginning that several share, and one that none has, are refused', async () => {
  await expect(found('run-a')).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('run-a1, run-a2') })
  await expect(found('run-c')).rejects.toMatchObject({ code: 'not_found' })
  await expect(found()).rejects.toMatchObject({ code: 'not_found' })
})
