import { UNOWNED_MEMORIES } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { checkMemory } from './check-memory.ts'

test('memories without an owner are a warning until each has one', async () => {
  const owners = [{ owner: 'cli', count: 1 }]
  const check = () => checkMemory({ owners: async () => owners })
  expect(await check()).toMatchObject({ status: 'ok', detail: '1 memory of 1 owner' })
  owners.push({ owner: UNOWNED_MEMORIES, count: 7 })
  expect(await check()).toMatchObject({
    status: 'warn',
    detail: expect.stringContaining(': 7'),
    fix: expect.stringContaining('sluice memory assign'),
  })
})
