import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import type { KernelI2c, KernelI2cFunctions } from '../native.ts'
import { fakeNative } from '../testing/fake-native.ts'
import { linuxI2c } from './linux-i2c.ts'

const EVERYTHING = { i2c: true, smbusReadI2cBlock: true, smbusWriteI2cBlock: true }

/** A bus that records its calls and fails with `code` when one is given. */
const arrange = (functions: KernelI2cFunctions = EVERYTHING, code?: string) => {
  const calls: string[] = []
  let open = 0
  const record =
    <Result>(name: string, result: (...args: number[]) => Result) =>
    async (...args: unknown[]): Promise<Result> => {
      calls.push([name, ...args.map((arg) => (typeof arg === 'number' ? arg : Buffer.from(arg as Uint8Array).toString('hex')))].join(' '))
      if (code !== undefined) throw Object.assign(new Error(code), { code })
      return result(...(args as number[]))
    }
  const bus: KernelI2c = {
    functions: async () => functions,
    receiveByte: record('receiveByte', () => 1),
    readByte: record('readByte', () => 2),
    readWord: record('readWord', () => 0x0403),
    readBlock: record('readBlock', (_address, _register, length = 0) => new Uint8Array(length)),
    read: record('read', (_address, length = 0) => new Uint8Array(length)),
    sendByte: record('sendByte', () => undefined),
    writeByte: record('writeByte', () => undefined),
    writeBlock: record('writeBlock', () => undefined),
    write: record('write', () => undefined),
    close: async () => void open--,
  }
  const openI2c = async () => {
    open++
    return bus
  }
  return { i2c: linuxI2c(fakeNative({ openI2c }), '/dev/i2c-1'), calls, open: () => open }
}

describe('linuxI2c', () => {
  const SMBUS = { ...EVERYTHING, i2c: false }
  const BYTES_ONLY = { i2c: false, smbusReadI2cBlock: false, smbusWriteI2cBlock: false }

  test.each<[string, KernelI2cFunctions, number, number | undefined, string]>([
    ['one byte', EVERYTHING, 1, undefined, 'receiveByte 72'],
    ['many bytes', EVERYTHING, 256, undefined, 'read 72 256'],
    ['a byte of a register', EVERYTHING, 1, 5, 'readByte 72 5'],
    ['bytes from a register', EVERYTHING, 32, 5, 'readBlock 72 5 32'],
    ['a word of a register without blocks', BYTES_ONLY, 2, 5, 'readWord 72 5'],
  ])('reads %s in one transaction', async (_length, functions, length, register, call) => {
    const { i2c, calls, open } = arrange(functions)
    expect(await i2c.read(0x48, length, register)).toHaveLength(length)
    expect(calls).toEqual([call])
    expect(open()).toBe(0)
  })

  test('returns a word with the low byte first', async () => {
    expect(await arrange(BYTES_ONLY).i2c.read(0x48, 2, 5)).toEqual(Uint8Array.of(3, 4))
  })

  test.each<[string, KernelI2cFunctions, number, number | undefined, RegExp]>([
    ['more than a block after a register', EVERYTHING, 33, 5, /at most 32 bytes after a register/],
    ['more than a byte on SMBus', SMBUS, 2, undefined, /one byte at a time/],
    ['more than a word without blocks', BYTES_ONLY, 3, 5, /at most 2 bytes after a register/],
  ])('refuses to read %s instead of splitting the read', async (_length, functions, length, register, sentence) => {
    const { i2c, calls } = arrange(functions)
    await expect(i2c.read(0x48, length, register)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(sentence),
    })
    expect(calls).toEqual([])
  })

  test.each<[KernelI2cFunctions, number[], string]>([
    [EVERYTHING, [7], 'sendByte 72 7'],
    [EVERYTHING, [7, 8], 'writeByte 72 7 8'],
    [EVERYTHING, [7, 8, 9], 'write 72 070809'],
    [SMBUS, [7, 8, 9], 'writeBlock 72 7 0809'],
  ])('writes in one transaction', async (functions, bytes, call) => {
    const { i2c, calls } = arrange(functions)
    await i2c.write(0x48, Uint8Array.from(bytes))
    expect(calls).toEqual([call])
  })

  test('refuses a write that is too long for the bus', async () => {
    await expect(arrange(SMBUS).i2c.write(0x48, new Uint8Array(34))).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(arrange(BYTES_ONLY).i2c.write(0x48, new Uint8Array(3))).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test.each([
    ['ENXIO', 'not_found'],
    ['EREMOTEIO', 'not_found'],
    ['ETIMEDOUT', 'upstream_timeout'],
    ['EBUSY', 'conflict'],
    ['EACCES', 'unavailable'],
    ['EPERM', 'unavailable'],
    ['ENOTTY', 'unavailable'],
  ])('turns %s into `%s` and closes the bus', async (code, answer) => {
    const { i2c, open } = arrange(EVERYTHING, code)
    await expect(i2c.read(0x48, 1)).rejects.toMatchObject({ code: answer })
    await expect(i2c.write(0x48, Uint8Array.of(1))).rejects.toBeInstanceOf(AppError)
    expect(open()).toBe(0)
  })

  test('probes with a read and writes nothing', async () => {
    const { i2c, calls } = arrange()
    expect(await i2c.probe(0x50)).toBe(true)
    expect(calls).toEqual(['receiveByte 80'])
    expect(await arrange(EVERYTHING, 'ENXIO').i2c.probe(0x50)).toBe(false)
    expect(await arrange(EVERYTHING, 'EBUSY').i2c.probe(0x50)).toBe('held')
    await expect(arrange(EVERYTHING, 'EACCES').i2c.probe(0x50)).rejects.toMatchObject({ code: 'unavailable' })
  })
})
