import { expect, test } from 'vitest'
import { inWindow, roomAtMs } from './sliding-window.ts'

const at = (...times: number[]) => times.map((atMs) => ({ atMs }))

test('counts within the window, also after the clock was set back by less than it', () => {
  expect(inWindow(at(0, 1, 100, 150, 201), 101, 100)).toEqual(at(100, 150))
  expect(inWindow(at(2, 200), 101, 100)).toEqual(at(2, 200))
})

test('has room again when so many have left that one fits', () => {
  expect(roomAtMs(at(1, 2), 3, 100)).toBeUndefined()
  expect(roomAtMs(at(1, 2, 3), 3, 100)).toBe(101)
  // More than the most may count after the limit was lowered.
  expect(roomAtMs(at(1, 2, 3, 4), 2, 100)).toBe(103)
})
