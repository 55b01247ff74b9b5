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

describe('the tools of the board', () => {
  test('appear once the board is detected, with a refresh', async () => {
    const board = fakeBoard()
    expect(board.parts.tools?.map((tool) => tool.available?.())).toEqual([false, false, false, false])
    expect(board.parts.prompt?.()).toBe('')
    await started(board)
    expect(board.parts.tools?.map((tool) => tool.available?.())).toEqual([true, true, true, true])
    expect(board.host.refreshes).toEqual(['found Raspberry Pi 4 Model B Rev 1.4'])
  })

  test('stay off on another machine, without a file and without opening GPIO', async () => {
    const { root, remove } = fakeRoot({})
    onTestFinished(remove)
    const host = testHost({ dataDir: root })
    const openGpio = async () => {
      throw new Error('GPIO was opened')
    }
    const parts = sbcFeature({ root, openGpio }).build(host, {})
    await parts.register?.(new AbortController().signal)
    await new Promise((resolve) => setImmediate(resolve))
    expect(parts.tools?.some((tool) => tool.available?.())).toBe(false)
    expect(parts.prompt?.()).toBe('')
    expect(host.refreshes).toEqual([])
    expect(existsSync(join(root, 'hardware'))).toBe(false)
    expect(await parts.check?.(new AbortController().signal)).toEqual([
      { status: 'ok', detail: expect.stringContaining('not a supported') },
    ])
    await parts.close?.()
  })

  test('have the risk `execute` when they write', () => {
    const { parts } = fakeBoard()
    expect(parts.tools?.map(({ name, risk }) => [name, risk])).toEqual([
      ['gpio_sbc_write', 'execute'],
      ['gpio_sbc_read', 'read'],
      ['gpio_sbc_blink', 'execute'],
      ['sbc_system_info', 'read'],
    ])
  })
})

describe('the system prompt', () => {
  test('contains the facts of the board, at most 5 s old, and the pin rules', async () => {
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
})

describe('sbc_system_info', () => {
  test('returns the board, its memory and temperature, and whether GPIO works', async () => {
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
})

describe('the device profile', () => {
  test('is written at the start', async () => {
    const board = await started(fakeBoard())
    const text = readFileSync(profileOf(board), 'utf8')
    expect(text).toMatch(/^# sbc0: Raspberry Pi 4 Model B Rev 1\.4\n/)
    expect(text).toContain('pinctrl-bcm2711, 58 lines')
    expect(text).toContain('GPIO 42')
  })

  test('is not written again when its text is the same', async () => {
    const board = await started(fakeBoard())
    utimesSync(profileOf(board), 1000, 1000)
    await sbcFeature({ root: board.root, openGpio: async () => board.gpio })
      .build(board.host, {})
      .register?.(new AbortController().signal)
    await expect.poll(() => board.host.refreshes.length).toBe(2)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(statSync(profileOf(board)).mtimeMs).toBe(1_000_000)
  })

  test('only warns when it cannot be written, and the tools still appear', async () => {
    const { root, remove } = fakeRoot({ file: '' })
    onTestFinished(remove)
    const board = fakeBoard({}, { dataDir: join(root, 'file') })
    await board.parts.register?.(new AbortController().signal)
    await expect.poll(() => board.host.logs.some(({ level }) => level === 'warn')).toBe(true)
    expect(board.parts.tools?.[0]?.available?.()).toBe(true)
  })
})

describe('the service nativeGpio', () => {
  test('reads and writes pins by the same rules', async () => {
    const { parts, gpio, chip } = fakeBoard()
    const service = parts.services?.nativeGpio
    await service?.write(17, 1)
    expect(gpio.level(17, chip)).toBe(1)
    expect(await service?.read(17)).toBe(1)
    await expect(service?.write(1, 1)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('shares leases and reservations with the tools', async () => {
    const { run, parts, records } = fakeBoard()
    const service = parts.services?.nativeGpio
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(service?.isThere).toBe(true)
    const use = { tool: 'gpio_write', context: { ...toolContext(), client: 'other' as ClientId }, pins: [17], write: { value: 0 } }
    await expect(service?.use(use, async () => 'ran')).rejects.toMatchObject({ code: 'conflict' })
    expect(records).toHaveLength(1)
  })

  test('releases every line at close and takes none afterwards', async () => {
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

  test('reports the model, the chip and the LED', async () => {
    expect(await fakeBoard().parts.check?.(signal)).toMatchObject([
      { status: 'ok', detail: 'model 4B: Raspberry Pi 4 Model B Rev 1.4' },
      { status: 'ok', detail: 'pinctrl-bcm2711 with 58 lines is /dev/gpiochip1' },
      { status: 'ok', detail: expect.stringContaining('leds/ACT') },
    ])
  })

  test('reports the fix for a missing permission or chip', async () => {
    const { root, remove } = fakeRoot({ 'proc/device-tree/model': 'Raspberry Pi 4 Model B Rev 1.4\0', ...FAKE_LED })
    onTestFinished(remove)
    const openGpio = async () => {
      throw new AppError('forbidden', 'No permission to open /dev/gpiochip0')
    }
    const findings = await sbcFeature({ root, openGpio }).build(testHost(), {}).check?.(signal)
    expect(findings?.[1]).toMatchObject({ status: 'fail', fix: expect.stringContaining('usermod -aG gpio') })
    expect((await fakeBoard({ label: 'other', files: {} }).parts.check?.(signal))?.slice(1)).toMatchObject([
      { status: 'fail', detail: expect.stringContaining('found: expander (8 lines), other (58 lines)') },
      { status: 'warn' },
    ])
  })
})
