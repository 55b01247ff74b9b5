import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { ALIASES_MAX, Aliases } from './aliases.ts'

describe('the aliases', () => {
  test('takes the first free number and keeps it', async () => {
    const keyValue = memoryKeyValue()
    const aliases = await Aliases.load(
      keyValue,
      () => 0,
      () => false,
    )
    expect(await aliases.bind('a', 'board_b', null)).toBe('board_b0')
    expect(await aliases.bind('b', 'board_b', null)).toBe('board_b1')
    expect(await aliases.bind('c', 'board_a', null)).toBe('board_a0')
    const again = await Aliases.load(
      keyValue,
      () => 0,
      () => false,
    )
    expect(await again.bind('b', 'board_b', '/dev/ttyACM7')).toBe('board_b1')
    expect(again.latestAt('/dev/ttyACM7')?.alias).toBe('board_b1')
  })

  test('two processes never give one alias to two devices', async () => {
    const keyValue = memoryKeyValue()
    const load = () =>
      Aliases.load(
        keyValue,
        () => 0,
        () => false,
      )
    const [one, other] = await Promise.all([load(), load()])
    const bound = await Promise.all([one.bind('a', 'board_b', null), other.bind('b', 'board_b', null)])
    expect(bound.sort()).toEqual(['board_b0', 'board_b1'])
    expect(await other.bind('a', 'board_b', null)).toBe(await one.bind('a', 'board_b', null))
  })

  test('forgets the least recently seen alias that is not in use', async () => {
    const keyValue = memoryKeyValue()
    let now = 0
    const aliases = await Aliases.load(
      keyValue,
      () => now++,
      (alias) => alias === 'board_b0',
    )
    for (let index = 0; index < ALIASES_MAX + 10; index++) await aliases.bind(`board ${index}`, 'board_b', null)
    expect(await keyValue.list('alias:', 1000)).toHaveLength(ALIASES_MAX)
    expect(aliases.find('board 0')?.alias).toBe('board_b0')
    expect(aliases.find('board 1')).toBeUndefined()
  })

  test('ignores stored values that are not aliases', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('alias:x', { alias: '../x', identity: 1 })
    await keyValue.set('alias:board_b0', 'nonsense')
    const aliases = await Aliases.load(
      keyValue,
      () => 0,
      () => false,
    )
    expect(await aliases.bind('a', 'board_b', null)).toBe('board_b0')
  })
})
