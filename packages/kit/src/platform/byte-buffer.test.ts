import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ByteBuffer } from './byte-buffer.ts'
import { readAll, readHead, readUpTo } from './read-up-to.ts'

/** Has `take` called with each of so many one-byte pieces. */
const feed = (count: number, take: (piece: Uint8Array) => void): void => {
  for (let n = 0; n < count; n++) take(Buffer.alloc(1, 65))
}

test('returns the bytes of pieces of any size', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 700 })), (pieces) => {
      const buffer = new ByteBuffer()
      for (const piece of pieces) buffer.append(piece)
      expect(Buffer.compare(buffer.bytes(), Buffer.concat(pieces))).toBe(0)
      expect(buffer.length).toBe(buffer.bytes().length)
    }),
  )
})

test('uses at most three times the memory of one-byte pieces', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const taken = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const count = 2 * 1024 * 1024
  const buffer = new ByteBuffer()
  const before = taken()
  feed(count, (piece) => buffer.append(piece))
  const after = taken()
  expect(buffer.length).toBe(count)
  expect(after - before).toBeLessThan(3 * count)
})

test('is empty after clear', () => {
  const buffer = new ByteBuffer()
  feed(3, (piece) => buffer.append(piece))
  buffer.clear()
  expect([buffer.length, buffer.bytes().length]).toEqual([0, 0])
  buffer.append(Buffer.from('again'))
  expect(buffer.bytes().toString()).toBe('again')
})

const answer = (...pieces: string[]): Response =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(Buffer.from(piece))
        controller.close()
      },
    }),
  )

test('readAll, readUpTo and readHead read a body whole, up to a limit, or its beginning', async () => {
  expect(Buffer.from(await readAll(answer('ab', 'cd'))).toString()).toBe('abcd')
  expect((await readUpTo(answer('ab', 'cd'), 4))?.toString()).toBe('abcd')
  expect(await readUpTo(answer('ab', 'cd'), 3)).toBeUndefined()
  expect((await readHead(answer('ab', 'cd', 'ef'), 3)).toString()).toBe('abc')
  expect((await readAll(new Response(null))).length).toBe(0)
})
