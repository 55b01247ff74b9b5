import { expect, test } from 'vitest'
import { mapStream } from './map-stream.ts'

async function collected(stream: ReadableStream<unknown>): Promise<unknown[]> {
  const values: unknown[] = []
  for await (const value of stream) values.push(value)
  return values
}

test('emits none, one or several values for each value, and the last ones at the end', async () => {
  const mapped = mapStream(ReadableStream.from([0, 1, 0, 0, 3, 0]), {
    push: (count, emit) => Array.from({ length: count }, (_, at) => emit(`${count}.${at}`)),
    end: (emit) => emit('end'),
  })
  expect(await collected(mapped)).toEqual(['1.0', '3.0', '3.1', '3.2', 'end'])
})

test('passes an error of the stream and of the mapping on', async () => {
  const failing = ReadableStream.from(
    (async function* () {
      yield 1
      throw new Error('broken')
    })(),
  )
  await expect(collected(mapStream(failing, { push: (value, emit) => emit(value) }))).rejects.toThrow('broken')
  const throwing = () => {
    throw new Error('bad value')
  }
  await expect(collected(mapStream(ReadableStream.from([1]), { push: throwing }))).rejects.toThrow('bad value')
})

test('reads nothing ahead, and cancels the stream it reads', async () => {
  let read = 0
  let cancelled: unknown
  const source = new ReadableStream<number>(
    {
      pull: (controller) => controller.enqueue(++read),
      cancel: (reason) => {
        cancelled = reason
      },
    },
    { highWaterMark: 0 },
  )
  const reader = mapStream<number, number>(source, { push: (value, emit) => emit(value) }).getReader()
  expect(await reader.read()).toEqual({ done: false, value: 1 })
  expect(read).toBe(1)
  await reader.cancel('enough')
  expect(cancelled).toBe('enough')
})
