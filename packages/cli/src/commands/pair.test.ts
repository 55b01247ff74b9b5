/** `sluice pair`, on a store that no daemon has open. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { describe, expect, test } from 'vitest'

const sluice = sluiceWith([])

describe('sluice pair', () => {
  test('list and revoke work while the file is not valid', async () => {
    const { dir, dispose } = scratch('')
    try {
      expect((await sluice('pair', 'token', '--name', 'phone', '--data-dir', dir)).code).toBe(0)
      writeFileSync(join(dir, 'config.toml'), '[nosuch]\n')
      const [{ id }] = JSON.parse((await sluice('pair', 'list', '--json', '--data-dir', dir)).out) as [{ id: string }]
      expect(await sluice('pair', 'revoke', id.slice(0, 8), '--data-dir', dir)).toMatchObject({ code: 0, out: `revoked ${id}\n` })
      expect(await sluice('pair', 'new', '--data-dir', dir)).toMatchObject({ code: 78, err: expect.stringContaining('[nosuch]') })
    } finally {
      dispose()
    }
  })

  test('token refuses an expiry beyond the largest date', async () => {
    const { dir, dispose } = scratch()
    try {
      const { code, err } = await sluice('pair', 'token', '--expires-days', '999999999999', '--data-dir', dir)
      expect([code, err]).toEqual([2, expect.stringContaining("--expires-days wants a whole number from 1 to 36500, not '999999999999'")])
      expect((await sluice('pair', 'token', '--expires-days', '36500', '--data-dir', dir)).code).toBe(0)
      expect((await sluice('pair', 'list', '--data-dir', dir)).code).toBe(0)
    } finally {
      dispose()
    }
  })
})
