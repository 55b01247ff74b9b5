import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { groupThatMay } from './port-access.ts'

test('a group is named only where it may read and write, and is not that of the administrator', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-port-'))
  try {
    const path = join(folder, 'port')
    writeFileSync(path, '')
    chmodSync(path, 0o640)
    expect(await groupThatMay(path)).toBeUndefined()
    chmodSync(path, 0o660)
    const group = await groupThatMay(path)
    expect(group === undefined).toBe(process.getgid?.() === 0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
