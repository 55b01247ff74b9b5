import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { groupWithAccess } from './port-access.ts'

describe('groupWithAccess', () => {
  test('returns only a group that may read and write, and never group 0', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-port-'))
    try {
      const path = join(folder, 'port')
      writeFileSync(path, '')
      chmodSync(path, 0o640)
      expect(await groupWithAccess(path)).toBeUndefined()
      chmodSync(path, 0o660)
      const group = await groupWithAccess(path)
      expect(group === undefined).toBe(process.getgid?.() === 0)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
