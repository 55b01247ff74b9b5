import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { hidPort, plug } from '../testing/fake-native.ts'
import { type HardwareKit, hardwareKit, type KitOptions, removeRoots } from '../testing/hardware-kit.ts'
import { Mcp2221Chip } from '../testing/mcp2221-chip.ts'

const kits: HardwareKit[] = []
const arrange = (options?: KitOptions): HardwareKit => {
  const kit = hardwareKit(options)
  kits.push(kit)
  return kit
}
afterAll(removeRoots)
afterEach(async () => {
  for (const { parts } of kits.splice(0)) await parts.close?.()
})

const hidAdapter = (adapter: object): KitOptions => {
  const chip = new Mcp2221Chip()
  return {
    config: { adapter },
    platform: 'darwin',
    native: {
      listHid: async () => [{ vendor: 0x04d8, product: 0x00dd, serial: 'A', path: 'one' }],
      openHid: async () => hidPort(chip, plug()),
    },
  }
}

describe('the adapter tools', () => {
  test('i2c_scan lists the devices that answer', async () => {
    const { run, reports } = arrange()
    expect(await run('i2c_scan', {})).toBe('I2C scan found 2 device(s): 0x48, 0x50')
    expect(reports).toEqual([{ data: '[72,80]' }])
  })

  test('i2c_read returns bytes, from a register when given', async () => {
    const { run, reports } = arrange()
    expect(await run('i2c_read', { addr: 0x48, register: 0, len: 2 })).toBe('I2C read from addr 0x48: [0x19, 0x00]')
    expect(await run('i2c_read', { addr: 0x48 })).toBe('I2C read from addr 0x48: [0x19]')
    expect(reports[0]).toEqual({ data: '[25,0]' })
  })

  test('i2c_write stores the bytes that i2c_read returns', async () => {
    const { run } = arrange()
    expect(await run('i2c_write', { addr: 0x50, bytes: [16, 1, 2, 3] })).toBe('I2C write to addr 0x50: 4 byte(s) written')
    expect(await run('i2c_read', { addr: 0x50, register: 16, len: 3 })).toBe('I2C read from addr 0x50: [0x01, 0x02, 0x03]')
  })

  test('spi_transfer returns as many bytes as it sends', async () => {
    const { run } = arrange()
    expect(await run('spi_transfer', { bytes: [0x9f, 0, 0, 0] })).toBe('SPI transfer complete. Received: [0xff, 0xef, 0x40, 0x18]')
  })

  test('gpio_adapter changes only the lines of its mask', async () => {
    const { run } = arrange()
    await run('gpio_adapter', { action: 'set', lines: 0b11, direction: 0b11, value: 0b10 })
    expect(await run('gpio_adapter', { action: 'set', lines: 0b100, direction: 0b100, value: 0b100 })).toBe(
      'GPIO set; lines 0b11111111, direction 0b00000111 (1: output), value 0b00000110',
    )
    expect(await run('gpio_adapter', { action: 'get' })).toContain('value 0b00000110')
  })

  test.each<[string, object]>([
    ['i2c_read', { addr: 0x07 }],
    ['i2c_read', { addr: 0x78 }],
    ['i2c_read', { addr: (0x48).valueOf() + 0.5 }],
    ['i2c_read', { addr: 0x48, len: 0 }],
    ['i2c_read', { addr: 0x48, len: 257 }],
    ['i2c_read', { addr: 0x48, register: 256 }],
    ['i2c_write', { addr: 0x48, bytes: [] }],
    ['i2c_write', { addr: 0x48, bytes: [256] }],
    ['i2c_write', { addr: 0x48, bytes: [-1] }],
    ['i2c_write', { addr: 0x48, bytes: new Array(257).fill(0) }],
    ['spi_transfer', { bytes: new Array(4097).fill(0) }],
    ['spi_transfer', { bytes: [0], mode: 4 }],
    ['spi_transfer', { bytes: [0], speed_hz: 1 }],
    ['gpio_adapter', { action: 'toggle' }],
    ['gpio_adapter', { action: 'set', value: 256 }],
    ['i2c_scan', { device: '/dev/i2c-0' }],
  ])('%s rejects %j', async (tool, input) => {
    await expect(arrange().run(tool, input)).rejects.toMatchObject({ name: 'ValiError' })
  })

  test.each([
    [{ action: 'set' }, 'direction, value or both'],
    [{ action: 'set', lines: 0, value: 0 }, 'at least one line'],
    [{ action: 'set', lines: 1, value: 2 }, 'outside of lines'],
    [{ action: 'set', lines: 1, direction: 3 }, 'outside of lines'],
  ])('gpio_adapter refuses %j', async (input, sentence) => {
    const { run, audited } = arrange()
    await expect(run('gpio_adapter', input)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining(sentence) })
    expect(audited).toEqual([])
  })

  test('gpio_adapter refuses lines that the adapter does not have', async () => {
    const { run } = arrange(hidAdapter({}))
    await expect(run('gpio_adapter', { action: 'set', lines: 0b10000, value: 0 })).rejects.toMatchObject({
      message: 'The MCP2221 has only the lines 0b00001111',
    })
  })

  test('have the risk `execute` when they write, even a register number', () => {
    const { risk } = arrange()
    expect(risk('i2c_scan', {})).toBe('read')
    expect(risk('i2c_read', { addr: 0x48 })).toBe('read')
    expect(risk('i2c_read', { addr: 0x48, register: 0 })).toBe('execute')
    expect(risk('i2c_write', { addr: 0x48, bytes: [0] })).toBe('execute')
    expect(risk('spi_transfer', { bytes: [0] })).toBe('execute')
    expect(risk('gpio_adapter', { action: 'get' })).toBe('read')
    expect(risk('gpio_adapter', { action: 'set', value: 1 })).toBe('execute')
    expect(risk('datasheet', { action: 'list' })).toBe('read')
    expect(risk('datasheet', { action: 'download' })).toBe('execute')
  })

  test('record every write in the audit log, and no read', async () => {
    const { run, audited } = arrange()
    await run('i2c_scan', {})
    await run('i2c_read', { addr: 0x48 })
    await run('gpio_adapter', { action: 'get' })
    expect(audited).toEqual([])
    await run('i2c_read', { addr: 0x48, register: 1 })
    await run('i2c_write', { addr: 0x50, bytes: [1, 2] })
    await run('spi_transfer', { bytes: new Array(100).fill(7) })
    await run('gpio_adapter', { action: 'set', lines: 1, value: 1 })
    expect(audited.map(({ detail }) => detail)).toMatchObject([
      { device: 'adapter0', tool: 'i2c_read', address: '0x48', register: '0x01' },
      { device: 'adapter0', tool: 'i2c_write', address: '0x50', length: 2, bytes: '0102' },
      { device: 'adapter0', tool: 'spi_transfer', length: 100, bytes: '07'.repeat(64), sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { device: 'adapter0', tool: 'gpio_adapter', lines: 1, value: 1, pins: [0] },
    ])
  })

  test('write nothing when the audit log fails', async () => {
    const { run } = arrange({ host: { services: { audit: async () => Promise.reject(new Error('full disk')) } } })
    await expect(run('i2c_write', { addr: 0x50, bytes: [0, 1] })).rejects.toThrow('full disk')
    expect(await run('i2c_read', { addr: 0x50 })).toContain('[0xff]')
  })

  test('lease the adapter to one client until some time after its last call', async () => {
    const { run, host } = arrange()
    await run('i2c_scan', {})
    await expect(run('i2c_scan', {}, { client: 'two' })).rejects.toMatchObject({ code: 'conflict' })
    await expect(run('datasheet', { action: 'list' }, { client: 'two' })).resolves.toBeTypeOf('string')
    await host.advance(31_000)
    await run('i2c_scan', {}, { client: 'two' })
  })

  test('reserve a line for the client that set it', async () => {
    const { run, host } = arrange()
    await run('gpio_adapter', { action: 'set', lines: 1, direction: 1, value: 1 })
    await host.advance(31_000)
    await expect(run('gpio_adapter', { action: 'set', lines: 3, value: 0 }, { client: 'two' })).rejects.toMatchObject({ code: 'conflict' })
    await run('gpio_adapter', { action: 'set', lines: 2, value: 0 }, { client: 'two' })
  })

  test('note unsupported settings in every answer and in the log', async () => {
    const { run, host } = arrange(hidAdapter({ pull_ups: true, volts: 5, i2c_speed_hz: 1_000_000 }))
    const answer = await run('i2c_scan', {})
    expect(answer).toContain('Note: MCP2221 has no switchable pull-up resistors')
    expect(answer).toContain('Note: MCP2221 cannot be set to 5 V')
    expect(answer).toContain('400000 Hz instead of i2c_speed_hz = 1000000')
    expect(host.logs.filter(({ level }) => level === 'warn')).toHaveLength(3)
  })

  test('fail when the adapter does not have the part', async () => {
    const { run } = arrange(hidAdapter({}))
    await expect(run('spi_transfer', { bytes: [0] })).rejects.toMatchObject({
      code: 'unavailable',
      message: 'adapter0 (MCP2221) has no SPI',
    })
  })

  test('show the pull-ups of the simulated adapter on its inputs', async () => {
    const { run } = arrange({ config: { adapter: { transport: 'sim', pull_ups: true } } })
    expect(await run('gpio_adapter', { action: 'get' })).toContain('value 0b11111111')
  })

  test('end a scan soon after its abort', async () => {
    const abort = new AbortController()
    const { run } = arrange()
    await run('i2c_scan', {})
    const running = run('i2c_scan', {}, { signal: abort.signal })
    abort.abort()
    await expect(running).rejects.toBeDefined()
  })
})
