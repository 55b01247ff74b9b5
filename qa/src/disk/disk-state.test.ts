import { createRandom } from '@sluice/testkit/random'
import { expect, test } from 'vitest'
import { diskStateAt } from './disk-state.ts'
import { type Call, FOLDER } from './trace.ts'

const call = (operation: Call['operation'], file: string, part: Partial<Call> = {}): Call => ({
  operation,
  file,
  position: 0,
  failed: false,
  bytes: new Uint8Array(),
  ...part,
})
const write = (text: string, position = 0) => call('write', 'a', { position, bytes: Buffer.from(text) })
const sync = (file = 'a', failed = false) => call('sync', file, { failed })
const CREATED = [call('create', 'a'), sync(FOLDER)]

const after = (calls: readonly Call[], survival: number) =>
  Object.fromEntries(
    [...diskStateAt(calls, { after: calls.length, survival, random: createRandom(1).next })].map(([name, bytes]) => [
      name,
      Buffer.from(bytes).toString(),
    ]),
  )

test('synced data is certain and later writes may survive', () => {
  const calls = [...CREATED, write('first'), sync(), write('FIRST'), write('more', 5)]
  expect(after(calls, 0)).toEqual({ a: 'first' })
  expect(after(calls, 1)).toEqual({ a: 'FIRSTmore' })
})

test('only calls before the cut have an effect', () => {
  const calls = [...CREATED, write('first'), write('later')]
  expect(diskStateAt(calls, { after: 3, survival: 1, random: () => 0 }).get('a')).toEqual(new Uint8Array(Buffer.from('first')))
})

test('a write can tear only between sectors', () => {
  const { a = '' } = after([...CREATED, write('.'.repeat(512 * 100)), sync(), write('x'.repeat(512 * 98), 300)], 0.5)
  const sectors = Array.from({ length: 100 }, (_, index) => a.slice(index * 512, (index + 1) * 512))
  expect(new Set(sectors.slice(1, -2))).toEqual(new Set(['.'.repeat(512), 'x'.repeat(512)]))
  expect(['.'.repeat(512), `${'.'.repeat(300)}${'x'.repeat(212)}`]).toContain(sectors[0])
})

test('the length of a file may survive without its bytes', () => {
  const lengths = Array.from({ length: 50 }, (_, seed) => {
    const state = diskStateAt([...CREATED, write('x')], { after: 3, survival: 0.5, random: createRandom(seed).next })
    return Buffer.from(state.get('a') ?? []).toString()
  })
  expect(new Set(lengths)).toEqual(new Set(['', '\0', 'x']))
})

test('a created or deleted file is certain after a sync of its folder', () => {
  expect(after([call('create', 'a'), write('first'), sync()], 0)).toEqual({})
  expect(after([...CREATED, write('first'), sync(), call('unlink', 'a')], 0)).toEqual({ a: 'first' })
  expect(after([...CREATED, call('unlink', 'a'), sync(FOLDER)], 0)).toEqual({})
})

test('a new file with an old name is a different file', () => {
  const calls = [...CREATED, write('old'), sync(), call('unlink', 'a'), call('create', 'a'), write('new')]
  expect(after(calls, 0)).toEqual({ a: 'old' })
  expect(after([...calls, sync()], 0)).toEqual({ a: 'old' })
  expect(after([...calls, sync(), sync(FOLDER)], 0)).toEqual({ a: 'new' })
})

test('a renamed file has one of its names until its folder is synced', () => {
  const calls = [...CREATED, write('text'), sync(), call('rename', 'a', { bytes: Buffer.from('b') })]
  expect(after(calls, 0)).toEqual({ a: 'text' })
  expect(after(calls, 1)).toEqual({ b: 'text' })
})

test('no later sync brings back what a failed sync lost', () => {
  expect(after([...CREATED, write('lost'), sync('a', true), sync()], 0)).toEqual({ a: '' })
  expect(after([...CREATED, write('lost'), sync('a', true), write('kept'), sync()], 0)).toEqual({ a: 'kept' })
})
