import { expect, test } from 'vitest'
import { SampleReader } from './samples.ts'

test.each([1, 2, 3, 5, 100])('samples are read from pieces of %i bytes', (pieceBytes) => {
  const samples = Int16Array.from({ length: 50 }, (_, at) => (at - 25) * 1000)
  const bytes = new Uint8Array(samples.buffer)
  const reader = new SampleReader()
  const read: number[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) read.push(...reader.push(bytes.subarray(at, at + pieceBytes)))
  expect(read).toEqual([...samples])
})
