import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { fakeBoard } from './testing/fake-board.ts'

const settled = (promise: Promise<unknown>) =>
  promise.then(
    (value) => ({ value }),
    (error: AppError) => ({ code: error.code, message: error.message }),
  )

describe('gpio_sbc_write', () => {
  test('holds the line on the chip with the right label', async () => {
    const { run, gpio, chip } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 17, value: 1 })).toBe('GPIO 17 -> HIGH')
    expect([gpio.level(17, chip), gpio.direction(17, chip), gpio.consumer(17, chip)]).toEqual([1, 'output', 'sluice'])
    expect(await run('gpio_sbc_write', { pin: 17, value: 0 })).toBe('GPIO 17 -> LOW')
    expect(gpio.level(17, chip)).toBe(0)
    expect(gpio.requests).toBe(1)
  })

  test('requests the line once for two first writes at the same time', async () => {
    const { run, gpio, chip } = fakeBoard()
    await Promise.all([run('gpio_sbc_write', { pin: 17, value: 1 }), run('gpio_sbc_write', { pin: 17, value: 0 })])
    expect(gpio.requests).toBe(1)
    expect(gpio.level(17, chip)).toBe(0)
  })

  test('is recorded in the audit log with pin and value', async () => {
    const { run, records } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(records).toMatchObject([{ by: 'turn:turn', detail: { device: 'sbc0', tool: 'gpio_sbc_write', pins: [17], value: 1 } }])
  })

  test('refuses another client during the lease, and longer on a reserved pin', async () => {
    const { run, host, gpio, chip } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    await expect(run('gpio_sbc_write', { pin: 22, value: 1 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
    await host.advance(30_000)
    await expect(run('gpio_sbc_write', { pin: 17, value: 0 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
    expect(gpio.level(17, chip)).toBe(1)
    expect(await run('gpio_sbc_write', { pin: 22, value: 1 }, undefined, 'other')).toBe('GPIO 22 -> HIGH')
  })

  test('reserves the activity LED as one pin, by name and by number', async () => {
    const { run, host, records } = fakeBoard()
    await run('gpio_sbc_write', { pin: 42, value: 1 })
    expect(records).toMatchObject([{ detail: { pins: ['led'] } }])
    await host.advance(30_000)
    await expect(run('gpio_sbc_write', { pin: 'led', value: 0 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
  })

  test('rejects other values and other pins', async () => {
    const { run, gpio } = fakeBoard()
    for (const input of [
      { pin: 17, value: 2 },
      { pin: 257, value: 1 },
      { pin: -1, value: 1 },
      { pin: 1.5, value: 1 },
      { pin: 'GPIO17', value: 1 },
    ])
      await expect(run('gpio_sbc_write', input)).rejects.toThrow()
    expect(gpio.requests).toBe(0)
  })
})

describe('a pin that cannot be used', () => {
  test.each([
    ['reserved', 0, {}, 'invalid_request', /plugged on top/],
    ['reserved', 1, {}, 'invalid_request', /plugged on top/],
    ['off the header', 28, {}, 'invalid_request', /2 to 27/],
    ['off the header', 255, {}, 'invalid_request', /2 to 27/],
    ['I2C', 2, { 'sys/bus/i2c/devices/i2c-1': '' }, 'conflict', /SDA of I2C.*switched on/],
    ['SPI', 10, { 'sys/class/spi_master/spi0': '' }, 'conflict', /MOSI of SPI.*switched on/],
    ['serial', 14, { 'dev/serial0': '' }, 'conflict', /TXD of the serial port/],
  ])('is refused without a record (%s): GPIO %i', async (_reason, pin, files, code, message) => {
    const { run, gpio, records } = fakeBoard({ files })
    for (const [tool, more] of [
      ['gpio_sbc_write', { value: 1 }],
      ['gpio_sbc_read', {}],
      ['gpio_sbc_blink', {}],
    ] as const)
      await expect(run(tool, { pin, ...more })).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(gpio.requests).toBe(0)
    expect(records).toEqual([])
  })

  test('is refused with the name of the kernel driver that holds it', async () => {
    const { run, gpio, chip, records } = fakeBoard()
    gpio.claim(4, 'onewire@4', chip)
    await expect(run('gpio_sbc_write', { pin: 4, value: 1 })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('onewire@4'),
    })
    await expect(run('gpio_sbc_read', { pin: 4 })).rejects.toMatchObject({ code: 'conflict' })
    expect(records).toEqual([])
  })

  test('can belong to another serial port on the model 5', async () => {
    const five = { model: 'Raspberry Pi 5 Model B Rev 1.0', label: 'pinctrl-rp1', lines: 54 }
    expect(await fakeBoard({ ...five, files: { 'dev/serial0': '' } }).run('gpio_sbc_write', { pin: 14, value: 1 })).toContain('HIGH')
    await expect(fakeBoard({ ...five, files: { 'dev/ttyAMA0': '' } }).run('gpio_sbc_write', { pin: 14, value: 1 })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('can be used with a remark while its interface is off', async () => {
    const { run } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 2, value: 1 })).toBe('GPIO 2 -> HIGH\n[GPIO 2 is also SDA of I2C, which is switched off]')
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 11 }))).toMatchObject({ remark: expect.stringContaining('SCLK') })
  })

  test('is unavailable when no chip has the label and size of the header', async () => {
    for (const changed of [{ label: 'pinctrl-rp1' }, { lines: 54 }]) {
      await expect(fakeBoard(changed).run('gpio_sbc_write', { pin: 17, value: 1 })).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('pinctrl-bcm2711'),
      })
    }
  })
})

describe('gpio_sbc_read', () => {
  test('returns level and direction of an input and releases the line unchanged', async () => {
    const { run, gpio, chip } = fakeBoard()
    gpio.drive(22, 1, chip)
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 22 }))).toEqual({ pin: 22, value: 1, state: 'HIGH', direction: 'input' })
    expect([gpio.direction(22, chip), gpio.consumer(22, chip)]).toEqual(['input', undefined])
  })

  test('keeps an output an output', async () => {
    const { run, gpio, chip } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 17 }))).toEqual({ pin: 17, value: 1, state: 'HIGH', direction: 'output' })
    expect([gpio.level(17, chip), gpio.direction(17, chip)]).toEqual([1, 'output'])
  })

  test('is not recorded in the audit log', async () => {
    const { run, records } = fakeBoard()
    await run('gpio_sbc_read', { pin: 22 })
    expect(records).toEqual([])
  })
})

/** Returns a board that is detected already, so that only the test's clock matters from then on. */
const detectedBoard = async () => {
  const board = fakeBoard()
  await board.run('gpio_sbc_read', { pin: 17 })
  return board
}

describe('gpio_sbc_blink', () => {
  test('goes high and low as requested and ends low', async () => {
    const { run, host, gpio, chip } = await detectedBoard()
    const running = run('gpio_sbc_blink', { pin: 17, times: 2, on_ms: 100, off_ms: 50 })
    const levels: number[] = []
    for (let ms = 0; ms < 300; ms += 25) {
      await host.advance(25)
      levels.push(gpio.level(17, chip))
    }
    expect(await running).toBe('Blinked GPIO 17 2 x (100/50 ms)')
    expect(levels.join('')).toMatch(/^1{3,4}0{1,2}1{3,4}0+$/)
  })

  test('ends low at once after an abort, with the number of blinks', async () => {
    const { run, host, gpio, chip } = await detectedBoard()
    const abort = new AbortController()
    const running = settled(run('gpio_sbc_blink', { pin: 17, times: 10, on_ms: 1000, off_ms: 1000 }, abort.signal))
    await host.advance(2500)
    expect(gpio.level(17, chip)).toBe(1)
    abort.abort()
    expect(await running).toEqual({ code: 'aborted', message: 'GPIO 17 blinked 1 of 10 times, then the call was aborted' })
    expect(gpio.level(17, chip)).toBe(0)
    expect(host.clock.sleeping).toBe(0)
  })

  test('refuses more than 120 s before it starts', async () => {
    const { run, gpio, records } = fakeBoard()
    await expect(run('gpio_sbc_blink', { pin: 17, times: 100, on_ms: 10_000, off_ms: 10_000 })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    await expect(run('gpio_sbc_blink', { pin: 17, times: 101 })).rejects.toThrow()
    expect(gpio.requests).toBe(0)
    expect(records).toEqual([])
  })
})

describe('the activity LED', () => {
  const trigger = 'sys/class/leds/ACT/trigger'
  const brightness = 'sys/class/leds/ACT/brightness'

  test('is written through sysfs and gets its trigger back at the end', async () => {
    const { run, text, parts, gpio } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 'led', value: 1 })).toBe('The activity LED -> HIGH')
    expect([text(trigger), text(brightness)]).toEqual(['none', '1'])
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 'led' }))).toMatchObject({ value: 1, direction: 'output', source: 'sysfs' })
    await parts.close?.()
    expect([text(trigger), text(brightness)]).toEqual(['mmc0', '0'])
    expect(gpio.requests).toBe(0)
  })

  test('gets its trigger back after blinking, also after an abort', async () => {
    const { run, text, host } = fakeBoard()
    const abort = new AbortController()
    const running = settled(run('gpio_sbc_blink', { pin: 'led', times: 5 }, abort.signal))
    while (text(trigger) !== 'none' || text(brightness) !== '1') await host.advance(1)
    abort.abort()
    expect(await running).toMatchObject({ code: 'aborted' })
    expect(text(trigger)).toBe('mmc0')
  })

  test('can be given by number when the header has no such pin', async () => {
    const { run, text } = fakeBoard()
    await run('gpio_sbc_write', { pin: 42, value: 1 })
    expect(text(brightness)).toBe('1')
    const { run: runFive, gpio, chip } = fakeBoard({ model: 'Raspberry Pi 5 Model B Rev 1.0', label: 'pinctrl-rp1', lines: 54 })
    await runFive('gpio_sbc_write', { pin: 9, value: 1 })
    expect(gpio.level(9, chip)).toBe(1)
  })

  test('gets its trigger back at the next start after a crash', async () => {
    const crashed = fakeBoard()
    await crashed.run('gpio_sbc_write', { pin: 'led', value: 1 })
    const next = fakeBoard({}, { keyValue: crashed.host.keyValue })
    next.put(trigger, '[none] timer mmc0\n')
    await next.parts.register?.(new AbortController().signal)
    await expect.poll(() => next.text(trigger)).toBe('mmc0')
  })

  // Root can write every file.
  test.skipIf(process.getuid?.() === 0)('is forbidden without write permission and stores nothing (not as root)', async () => {
    const { run, root, host } = fakeBoard()
    chmodSync(join(root, trigger), 0o444)
    await expect(run('gpio_sbc_write', { pin: 'led', value: 1 })).rejects.toMatchObject({ code: 'forbidden' })
    expect(await host.keyValue.get('led')).toBeUndefined()
  })

  test('is unavailable on a machine without one, without a record', async () => {
    const { run, records } = fakeBoard({ files: {} })
    await expect(run('gpio_sbc_write', { pin: 'led', value: 1 })).rejects.toMatchObject({ code: 'unavailable' })
    expect(records).toEqual([])
  })
})

describe('the GPIO tools', () => {
  test('name the supported boards on another machine', async () => {
    const { run } = fakeBoard({ model: 'Some Laptop' })
    for (const [tool, input] of [
      ['gpio_sbc_write', { pin: 17, value: 1 }],
      ['gpio_sbc_read', { pin: 17 }],
      ['sbc_system_info', {}],
    ] as const)
      await expect(run(tool, input)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('Zero 2W') })
  })

  test('throw an AppError for a line without a holder name', async () => {
    const { run, gpio, chip } = fakeBoard()
    gpio.claim(17, '', chip)
    expect(await run('gpio_sbc_write', { pin: 17, value: 1 }).catch((error: unknown) => error)).toBeInstanceOf(AppError)
  })
})
