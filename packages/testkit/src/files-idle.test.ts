import { readFile, stat } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { watchFileOperations } from './files-idle.ts'

const filesIdle = watchFileOperations()

test('waits for file operations, and for further ones that follow from them', async () => {
  for (let round = 0; round < 100; round++) {
    let bytes = 0
    void stat(import.meta.filename)
      .then(() => readFile(import.meta.filename))
      .then((file) => {
        bytes = file.length
      })
    await filesIdle()
    expect(bytes).toBeGreaterThan(0)
  }
})

test('ends when an operation fails', async () => {
  let isOver = false
  void stat('/nothing/here').catch(() => {
    isOver = true
  })
  await filesIdle()
  expect(isOver).toBe(true)
})
