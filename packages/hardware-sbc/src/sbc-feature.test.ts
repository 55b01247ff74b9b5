import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { AppError, type ClientId } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sbcFeature } from './sbc-feature.ts'
import { FAKE_LED, fakeBoard, fakeRoot } from './testing/fake-board.ts'

const started = async (board: ReturnType<typeof fakeBoard>) => {
  await board.parts.register?.(new AbortController().signal)
  await expect.poll(() => existsSync(profileOf(board))).toBe(true)
  return board
}
const profileOf = ({ root }: { readonly root: string }) => join(root, 'data/hardware/devices/sbc0.md')
const THERMAL = {
  'sys/class/thermal/thermal_zone0/type': 'gpu-thermal\n',
  'sys/class/thermal/thermal_zone0/temp': '1000\n',
  'sys/class/thermal/thermal_zone1/type': 'cpu-thermal\n',
  'sys/class/thermal/thermal_zone1/temp': '48312\n',
}

describe('§2.7 the tools are there on a supported board only', () => {
  test('they appear once it is found, and the daemon is told', async () => {
    const board = fakeBoard()
    expect(board.parts.tools?.map((tool) => tool.available?.())).toEqual([false, false, false, false])
    expect(board.parts.prompt?.()).toBe('')
    await started(board)
    expect(board.parts.tools?.map((tool) => tool.available?.())).toEqual([true, true, true, true])
    expect(board.host.refreshes).toEqual(['found Raspberry Pi 4 Model B Rev 1.4'])
  })

  test('on another machine nothing appears, nothing is written and GPIO is never opened', async () => {
    const { root, remove } = fakeRoot({})
    onTestFinished(remove)
    const host = testHost({ dataDir: root })
    const openGpio = async () => {
      throw new Error('it was opened')
    }
    const parts = sbcFeature({ root, openGpio }).build(host, {})
    await parts.register?.(new AbortController().signal)
    await new Promise((resolve) => setImmediate(resolve))
    expect(parts.tools?.some((tool) => tool.available?.())).toBe(false)
    expect(parts.prompt?.()).toBe('')
    expect(host.refreshes).toEqual([])
    expect(existsSync(join(root, 'hardware'))).toBe(false)
    expect(await parts.check?.(new AbortController().signal)).toEqual([{ status: 'ok', detail: expect.stringContaining('no supported') }])
    await parts.close?.()
  })

  test('what moves pins is asked for at the default level, reading is not', () => {
    const { parts } = fakeBoard()
    expect(parts.tools?.map(({ name, risk }) => [name, risk])).toEqual([
      ['gpio_sbc_write', 'execute'],
      ['gpio_sbc_read', 'read'],
      ['gpio_sbc_blink', 'execute'],
      ['sbc_system_info', 'read'],
    ])
  })
})

test('§2.7 the prompt has model, address, memory, temperature and the rules of the pins, and is a few seconds old at most', async () => {
  const board = await started(fakeBoard({ files: THERMAL }))
  const prompt = board.parts.prompt?.() ?? ''
  expect(prompt).toMatch(
    /model 4B \(Raspberry Pi 4 Model B Rev 1\.4\), device sbc0: host name .+, (?:IP .+|no network), RAM \d+ of \d+ MB free, CPU 48\.3 °C\./,
  )
  expect(prompt).toContain('0 and 1 are reserved')
  board.put('sys/class/thermal/thermal_zone1/temp', '60000\n')
  expect(board.parts.prompt?.()).toBe(prompt)
  await board.host.advance(5000)
  expect(board.parts.prompt?.()).toContain('CPU 60 °C')
})

test('sbc_system_info tells the board, its memory and temperature, and whether GPIO can be reached', async () => {
  const { run } = fakeBoard({ files: THERMAL })
  expect(JSON.parse(await run('sbc_system_info', {}))).toMatchObject({
    model: 'Raspberry Pi 4 Model B Rev 1.4',
    board: '4B',
    hostname: expect.any(String),
    ram_total_mb: expect.any(Number),
    ram_free_mb: expect.any(Number),
    cpu_temp_celsius: 48.3,
    gpio_available: true,
    onboard_led_gpio: 42,
  })
  expect(JSON.parse(await fakeBoard({ label: 'other', files: {} }).run('sbc_system_info', {}))).toMatchObject({
    cpu_temp_celsius: null,
    gpio_available: false,
  })
})

describe('the device profile', () => {
  test('§2.7 is written at start, whole', async () => {
    const board = await started(fakeBoard())
    const text = readFileSync(profileOf(board), 'utf8')
    expect(text).toMatch(/^# sbc0: Raspberry Pi 4 Model B Rev 1\.4\n/)
    expect(text).toContain('pinctrl-bcm2711, 58 lines')
    expect(text).toContain('GPIO 42')
  })

  test('is left alone where it says the same already', async () => {
    const board = await started(fakeBoard())
    utimesSync(profileOf(board), 1000, 1000)
    await sbcFeature({ root: board.root, openGpio: async () => board.gpio })
      .build(board.host, {})
      .register?.(new AbortController().signal)
    await expect.poll(() => board.host.refreshes.length).toBe(2)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(statSync(profileOf(board)).mtimeMs).toBe(1_000_000)
  })

  test('that cannot be written is a warning, and the tools are there all the same', async () => {
    const { root, remove } = fakeRoot({ file: '' })
    onTestFinished(remove)
    const board = fakeBoard({}, { dataDir: join(root, 'file') })
    await board.parts.register?.(new AbortController().signal)
    await expect.poll(() => board.host.logs.some(({ level }) => level === 'warn')).toBe(true)
    expect(board.parts.tools?.[0]?.available?.()).toBe(true)
  })
})

describe('the pins of this machine for other features', () => {
  test('are read and written by the same rules', async () => {
    const { parts, gpio, chip } = fakeBoard()
    const pins = parts.services?.nativeGpio
    await pins?.write(17, 1)
    expect(gpio.level(17, chip)).toBe(1)
    expect(await pins?.read(17)).toBe(1)
    await expect(pins?.write(1, 1)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('are leased and reserved as for the tools of this feature', async () => {
    const { run, parts, records } = fakeBoard()
    const pins = parts.services?.nativeGpio
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(pins?.isThere).toBe(true)
    const use = { tool: 'gpio_write', context: { ...toolContext(), client: 'other' as ClientId }, pins: [17], write: { value: 0 } }
    await expect(pins?.use(use, async () => 'ran')).rejects.toMatchObject({ code: 'conflict' })
    expect(records).toHaveLength(1)
  })

  test('close lets go of every line, and nothing is taken afterwards', async () => {
    const { parts, gpio, chip } = fakeBoard()
    await parts.services?.nativeGpio?.write(17, 1)
    await parts.close?.()
    expect(gpio.consumer(17, chip)).toBeUndefined()
    await expect(parts.services?.nativeGpio?.write(17, 1)).rejects.toMatchObject({ code: 'unavailable' })
    await parts.close?.()
    expect(gpio.consumer(17, chip)).toBeUndefined()
  })
})

describe('sluice doctor', () => {
  const signal = new AbortController().signal

  test('names the model, the chip and the LED', async () => {
    expect(await fakeBoard().parts.check?.(signal)).toMatchObject([
      { status: 'ok', detail: 'model 4B: Raspberry Pi 4 Model B Rev 1.4' },
      { status: 'ok', detail: 'pinctrl-bcm2711 with 58 lines is /dev/gpiochip1' },
      { status: 'ok', detail: expect.stringContaining('leds/ACT') },
    ])
  })

  test('says what to do where a permission or the chip is missing', async () => {
    const { root, remove } = fakeRoot({ 'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.4\0', ...FAKE_LED })
    onTestFinished(remove)
    const openGpio = async () => {
      throw new AppError('forbidden', '/dev/gpiochip0 may not be opened')
    }
    const findings = await sbcFeature({ root, openGpio }).build(testHost(), {}).check?.(signal)
    expect(findings?.[1]).toMatchObject({ status: 'fail', fix: expect.stringContaining('usermod -aG gpio') })
    expect((await fakeBoard({ label: 'other', files: {} }).parts.check?.(signal))?.slice(1)).toMatchObject([
      { status: 'fail', detail: expect.stringContaining('found: expander (8 lines), other (58 lines)') },
      { status: 'warn' },
    ])
  })
})
