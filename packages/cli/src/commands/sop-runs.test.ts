import type { SopRun } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { findRun } from './sop-runs.ts'

const rows = ['run-a1', 'run-a2', 'run-b', 'run-b-longer'].map((id) => ({ id }) as SopRun)
const sops = { get: async (id: string) => rows.find((run) => run.id === id), runs: async () => rows }
const found = async (id?: string) => (await findRun(sops, id)).id

describe('findRun', () => {
  test('prefers an exact id to a longer id with the same beginning', async () => {
    expect(await found('run-b')).toBe('run-b')
  })

  test('finds a run by a prefix that no other run shares', async () => {
    expect(await found('run-b-')).toBe('run-b-longer')
  })

  test('refuses an ambiguous prefix and an unknown id', async () => {
    await expect(found('run-a')).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('run-a1, run-a2') })
    await expect(found('run-c')).rejects.toMatchObject({ code: 'not_found' })
    await expect(found()).rejects.toMatchObject({ code: 'not_found' })
  })
})
