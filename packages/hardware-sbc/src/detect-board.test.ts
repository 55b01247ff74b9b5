import { describe, expect, onTestFinished, test } from 'vitest'
import { detectBoard } from './detect-board.ts'
import { fakeRoot } from './testing/fake-board.ts'

const rootWith = (files: Readonly<Record<string, string>>): string => {
  const { root, remove } = fakeRoot(files)
  onTestFinished(remove)
  return root
}

describe('detectBoard', () => {
  test.each([
    ['Raspberry Pi 3 Model B Rev 1.2', '3B', 'pinctrl-bcm2835', 54],
    ['Raspberry Pi 3 Model B', '3B', 'pinctrl-bcm2835', 54],
    ['Raspberry Pi 3 Model B Plus Rev 1.3', '3B+', 'pinctrl-bcm2835', 54],
    ['Raspberry Pi 3 Model B+', '3B+', 'pinctrl-bcm2835', 54],
    ['Raspberry Pi 4 Model B Rev 1.4', '4B', 'pinctrl-bcm2711', 58],
    ['Raspberry Pi 5 Model B Rev 1.0', '5', 'pinctrl-rp1', 54],
    ['Raspberry Pi Zero 2 W Rev 1.0', 'Zero 2W', 'pinctrl-bcm2835', 54],
    ['Raspberry Pi Zero 2 W', 'Zero 2W', 'pinctrl-bcm2835', 54],
  ])('recognizes %s as model %s with its GPIO chip', async (fullName, name, label, lines) => {
    const board = await detectBoard(rootWith({ 'proc/device-tree/model': `${fullName}\0` }))
    expect(board).toMatchObject({ fullName, model: { name, chip: { label, lines } } })
  })

  test.each([
    'Raspberry Pi 2 Model B Rev 1.1',
    'Raspberry Pi 3 Model A Plus Rev 1.0',
    'Raspberry Pi 400 Rev 1.0',
    'Raspberry Pi 500 Rev 1.0',
    'Raspberry Pi Compute Module 4 Rev 1.0',
    'Raspberry Pi Zero W Rev 1.1',
    'Orange Pi 5 Model B',
    'Not a Raspberry Pi 4 Model B Rev 1.4',
    'Raspberry Pi 4 Model B Rev 1.4 clone',
    'raspberry pi 5',
    '',
  ])('does not recognize %j', async (model) => {
    expect(await detectBoard(rootWith({ 'proc/device-tree/model': `${model}\0` }))).toBeUndefined()
  })

  test('reads the file under /sys when /proc has none', async () => {
    const root = rootWith({ 'sys/firmware/devicetree/base/model': 'Raspberry Pi 4 Model B Rev 1.4\0' })
    expect(await detectBoard(root)).toMatchObject({ model: { name: '4B' } })
  })

  test('returns undefined for a missing, huge or binary file', async () => {
    expect(await detectBoard(rootWith({}))).toBeUndefined()
    expect(await detectBoard(rootWith({ 'proc/device-tree/model': 'Raspberry Pi 4 Model B'.padEnd(1_000_000, 'x') }))).toBeUndefined()
    expect(await detectBoard(rootWith({ 'proc/device-tree/model': '\u0001\u0002\u0000Raspberry Pi 4 Model B' }))).toBeUndefined()
  })
})
