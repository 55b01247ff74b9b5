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
  test('a written level stays: the line is held by sluice on the chip with the right label', async () => {
    const { run, gpio, chip } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 17, value: 1 })).toBe('GPIO 17 -> HIGH')
    expect([gpio.level(17, chip), gpio.direction(17, chip), gpio.consumer(17, chip)]).toEqual([1, 'output', 'sluice'])
    expect(await run('gpio_sbc_write', { pin: 17, value: 0 })).toBe('GPIO 17 -> LOW')
    expect(gpio.level(17, chip)).toBe(0)
    expect(gpio.requests).toBe(1)
  })

  test('two first writes of a pin at once take its line once', async () => {
    const { run, gpio, chip } = fakeBoard()
    await Promise.all([run('gpio_sbc_write', { pin: 17, value: 1 }), run('gpio_sbc_write', { pin: 17, value: 0 })])
    expect(gpio.requests).toBe(1)
    expect(gpio.level(17, chip)).toBe(0)
  })

  test('§2.7 it is on record with pin and value', async () => {
    const { run, records } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(records).toMatchObject([{ by: 'turn:turn', detail: { device: 'sbc0', tool: 'gpio_sbc_write', pins: [17], value: 1 } }])
  })

  test('§2.7 another client is refused while the lease lasts, and later still on a reserved pin', async () => {
    const { run, host, gpio, chip } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    await expect(run('gpio_sbc_write', { pin: 22, value: 1 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
    await host.advance(30_000)
    await expect(run('gpio_sbc_write', { pin: 17, value: 0 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
    expect(gpio.level(17, chip)).toBe(1)
    expect(await run('gpio_sbc_write', { pin: 22, value: 1 }, undefined, 'other')).toBe('GPIO 22 -> HIGH')
  })

  test('§2.7 the activity LED is reserved as one, by its name and by its number', async () => {
    const { run, host, records } = fakeBoard()
    await run('gpio_sbc_write', { pin: 42, value: 1 })
    expect(records).toMatchObject([{ detail: { pins: ['led'] } }])
    await host.advance(30_000)
    await expect(run('gpio_sbc_write', { pin: 'led', value: 0 }, undefined, 'other')).rejects.toMatchObject({ code: 'conflict' })
  })

  test('its input is two values and a pin that is a number or the LED', async () => {
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

describe('pins that are not free are refused with the reason, and nothing is put on record', () => {
  test.each([
    ['reserved', 0, {}, 'invalid_request', /plugged on top/],
    ['reserved', 1, {}, 'invalid_request', /plugged on top/],
    ['off the header', 28, {}, 'invalid_request', /2 to 27/],
    ['off the header', 255, {}, 'invalid_request', /2 to 27/],
    ['I2C', 2, { 'sys/bus/i2c/devices/i2c-1': '' }, 'conflict', /SDA of I2C.*switched on/],
    ['SPI', 10, { 'sys/class/spi_master/spi0': '' }, 'conflict', /MOSI of SPI.*switched on/],
    ['serial', 14, { 'dev/serial0': '' }, 'conflict', /TXD of the serial port/],
  ])('%s: GPIO %i', async (_why, pin, files, code, message) => {
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

  test("a kernel driver's line, by the name of its holder", async () => {
    const { run, gpio, chip, records } = fakeBoard()
    gpio.claim(4, 'onewire@4', chip)
    await expect(run('gpio_sbc_write', { pin: 4, value: 1 })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('onewire@4'),
    })
    await expect(run('gpio_sbc_read', { pin: 4 })).rejects.toMatchObject({ code: 'conflict' })
    expect(records).toEqual([])
  })

  test('the serial port of the 5 is another device', async () => {
    const five = { model: 'Raspberry Pi 5 Model B Rev 1.0', label: 'pinctrl-rp1', lines: 54 }
    expect(await fakeBoard({ ...five, files: { 'dev/serial0': '' } }).run('gpio_sbc_write', { pin: 14, value: 1 })).toContain('HIGH')
    await expect(fakeBoard({ ...five, files: { 'dev/ttyAMA0': '' } }).run('gpio_sbc_write', { pin: 14, value: 1 })).rejects.toMatchObject({
      code: 'conflict',
    })
  })

  test('pins of an interface that is off are allowed, with a remark', async () => {
    const { run } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 2, value: 1 })).toBe('GPIO 2 -> HIGH\n[GPIO 2 is also SDA of I2C, which is switched off]')
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 11 }))).toMatchObject({ remark: expect.stringContaining('SCLK') })
  })

  test('a chip with another label or size is not the header', async () => {
    for (const changed of [{ label: 'pinctrl-rp1' }, { lines: 54 }]) {
      await expect(fakeBoard(changed).run('gpio_sbc_write', { pin: 17, value: 1 })).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('pinctrl-bcm2711'),
      })
    }
  })
})

describe('gpio_sbc_read', () => {
  test('tells level and direction of an input, and lets the line go unchanged', async () => {
    const { run, gpio, chip } = fakeBoard()
    gpio.drive(22, 1, chip)
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 22 }))).toEqual({ pin: 22, value: 1, state: 'HIGH', direction: 'input' })
    expect([gpio.direction(22, chip), gpio.consumer(22, chip)]).toEqual(['input', undefined])
  })

  test('a pin that is put out stays an output', async () => {
    const { run, gpio, chip } = fakeBoard()
    await run('gpio_sbc_write', { pin: 17, value: 1 })
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 17 }))).toEqual({ pin: 17, value: 1, state: 'HIGH', direction: 'output' })
    expect([gpio.level(17, chip), gpio.direction(17, chip)]).toEqual([1, 'output'])
  })

  test('is not on record', async () => {
    const { run, records } = fakeBoard()
    await run('gpio_sbc_read', { pin: 22 })
    expect(records).toEqual([])
  })
})

/** One whose files have been read, so that from here on only the test's clock counts. */
const knownBoard = async () => {
  const board = fakeBoard()
  await board.run('gpio_sbc_read', { pin: 17 })
  return board
}

describe('gpio_sbc_blink', () => {
  test('goes high and low as often and as long as it was told, and ends low', async () => {
    const { run, host, gpio, chip } = await knownBoard()
    const running = run('gpio_sbc_blink', { pin: 17, times: 2, on_ms: 100, off_ms: 50 })
    const seen: number[] = []
    for (let ms = 0; ms < 300; ms += 25) {
      await host.advance(25)
      seen.push(gpio.level(17, chip))
    }
    expect(await running).toBe('Blinked GPIO 17 2 x (100/50 ms)')
    expect(seen.join('')).toMatch(/^1{3,4}0{1,2}1{3,4}0+$/)
  })

  test('an abort ends it at once, low, and the model is told how far it came', async () => {
    const { run, host, gpio, chip } = await knownBoard()
    const abort = new AbortController()
    const running = settled(run('gpio_sbc_blink', { pin: 17, times: 10, on_ms: 1000, off_ms: 1000 }, abort.signal))
    await host.advance(2500)
    expect(gpio.level(17, chip)).toBe(1)
    abort.abort()
    expect(await running).toEqual({ code: 'aborted', message: 'GPIO 17 blinked 1 of 10 times, then the call was aborted' })
    expect(gpio.level(17, chip)).toBe(0)
    expect(host.clock.sleeping).toBe(0)
  })

  test('what takes more than 120 s is refused before anything happens', async () => {
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

  test('is written through sysfs with its trigger resting, and gets the trigger back at the end', async () => {
    const { run, text, parts, gpio } = fakeBoard()
    expect(await run('gpio_sbc_write', { pin: 'led', value: 1 })).toBe('The activity LED -> HIGH')
    expect([text(trigger), text(brightness)]).toEqual(['none', '1'])
    expect(JSON.parse(await run('gpio_sbc_read', { pin: 'led' }))).toMatchObject({ value: 1, direction: 'output', source: 'sysfs' })
    await parts.close?.()
    expect([text(trigger), text(brightness)]).toEqual(['mmc0', '0'])
    expect(gpio.requests).toBe(0)
  })

  test('shows its trigger again after blinking, also after an abort', async () => {
    const { run, text, host } = fakeBoard()
    const abort = new AbortController()
    const running = settled(run('gpio_sbc_blink', { pin: 'led', times: 5 }, abort.signal))
    while (text(trigger) !== 'none' || text(brightness) !== '1') await host.advance(1)
    abort.abort()
    expect(await running).toMatchObject({ code: 'aborted' })
    expect(text(trigger)).toBe('mmc0')
  })

  test('is known by its number too where that is not on the header', async () => {
    const { run, text } = fakeBoard()
    await run('gpio_sbc_write', { pin: 42, value: 1 })
    expect(text(brightness)).toBe('1')
    const { run: runFive, gpio, chip } = fakeBoard({ model: 'Raspberry Pi 5 Model B Rev 1.0', label: 'pinctrl-rp1', lines: 54 })
    await runFive('gpio_sbc_write', { pin: 9, value: 1 })
    expect(gpio.level(9, chip)).toBe(1)
  })

  test('a trigger that a crash kept from coming back comes back at the next start', async () => {
    const crashed = fakeBoard()
    await crashed.run('gpio_sbc_write', { pin: 'led', value: 1 })
    const next = fakeBoard({}, { keyValue: crashed.host.keyValue })
    next.put(trigger, '[none] timer mmc0\n')
    await next.parts.register?.(new AbortController().signal)
    await expect.poll(() => next.text(trigger)).toBe('mmc0')
  })

  // Root may write everything.
  test.skipIf(process.getuid?.() === 0)(
    'one that may not be written is forbidden, and nothing is left to give back (needs no root)',
    async () => {
      const { run, root, host } = fakeBoard()
      chmodSync(join(root, trigger), 0o444)
      await expect(run('gpio_sbc_write', { pin: 'led', value: 1 })).rejects.toMatchObject({ code: 'forbidden' })
      expect(await host.keyValue.get('led')).toBeUndefined()
    },
  )

  test('a machine without one says so, and that is not on record', async () => {
    const { run, records } = fakeBoard({ files: {} })
    await expect(run('gpio_sbc_write', { pin: 'led', value: 1 })).rejects.toMatchObject({ code: 'unavailable' })
    expect(records).toEqual([])
  })
})

test('on another machine every call says which boards are meant', async () => {
  const { run } = fakeBoard({ model: 'Some Laptop' })
  for (const [tool, input] of [
    ['gpio_sbc_write', { pin: 17, value: 1 }],
    ['gpio_sbc_read', { pin: 17 }],
    ['sbc_system_info', {}],
  ] as const)
    await expect(run(tool, input)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('Zero 2W') })
})

test('a refusal is an AppError, whatever the chip says', async () => {
  const { run, gpio, chip } = fakeBoard()
  gpio.claim(17, '', chip)
  expect(await run('gpio_sbc_write', { pin: 17, value: 1 }).catch((error: unknown) => error)).toBeInstanceOf(AppError)
})
