import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findControlGroups } from './control-groups.ts'

const MEBIBYTE = 1024 * 1024
const groups = await findControlGroups()

describe('findControlGroups', () => {
  test.skipIf(!groups)('bounds swap together with memory if the kernel accounts swap', async () => {
    const group = await groups?.create({ memoryBytesMax: 64 * MEBIBYTE, processesMax: 10 })
    try {
      const bounds = (group?.joinFiles ?? []).flatMap((path) => swapFiles(dirname(path)))
      for (const file of bounds) expect(Number(readFileSync(file, 'utf8'))).toBe(file.endsWith('.swap.max') ? 0 : 64 * MEBIBYTE)
    } finally {
      await group?.remove()
    }
  })
})

const swapFiles = (folder: string): string[] =>
  ['memory.swap.max', 'memory.memsw.limit_in_bytes'].map((name) => join(folder, name)).filter((path) => existsSync(path))
