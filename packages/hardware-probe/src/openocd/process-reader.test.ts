import { AppError, type Spawn, type SpawnRequest, type SpawnResult } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, test } from 'vitest'
import { F401_MEMORY } from '../testing/chip-memory.ts'
import { ended, openocdProcess } from '../testing/fake-openocd.ts'
import { OpenOcdProcessReader } from './process-reader.ts'

const BLOCK = { address: 0x20000000, length: 8, width: 4 } as const
const { signal } = new AbortController()
const readerWith = (spawn: Spawn) =>
  new OpenOcdProcessReader(testHost({ spawn }), { program: 'openocd', args: ['-f', 'board/st_nucleo_f4.cfg'], network: false }, 5000)
const read = (spawn: Spawn) => readerWith(spawn).read([BLOCK], signal)

describe('OpenOcdProcessReader', () => {
  test('reads all blocks with one process that opens no port', async () => {
    const requests: SpawnRequest[] = []
    const readings = await read((request) => {
      requests.push(request)
      return openocdProcess(F401_MEMORY)(request)
    })
    expect(readings.map((bytes) => bytes && Buffer.from(bytes).toString('hex'))).toEqual(['0001020304050607'])
    expect(requests).toHaveLength(1)
    const { file, args, cwd, policy, timeoutMs } = requests[0] ?? {}
    expect({ file, cwd, timeoutMs }).toEqual({ file: 'openocd', cwd: '/', timeoutMs: 5000 })
    expect(args?.join(' ')).toMatch(
      /^-f board\/st_nucleo_f4\.cfg -c gdb_port disabled -c tcl_port disabled -c telnet_port disabled -c init -c echo .* -c shutdown$/,
    )
    expect(policy).toMatchObject({ writable: [], network: false, devices: expect.arrayContaining(['/dev/bus/usb']) })
  })

  test.each<[string, () => SpawnResult, object]>([
    [
      'is missing in the sandbox',
      () => ended({ exitCode: 127, stderr: 'openocd: not found' }),
      { message: expect.stringContaining('install OpenOCD') },
    ],
    [
      'finds no probe',
      () => ended({ exitCode: 1, stderr: 'Open On-Chip Debugger 0.12.0\nInfo : clock\nError: open failed\n' }),
      { code: 'unavailable', message: 'OpenOCD cannot reach the chip: open failed' },
    ],
    [
      'may not open the probe',
      () => ended({ exitCode: 1, stderr: 'Open On-Chip Debugger 0.12.0\nError: libusb_open() failed with LIBUSB_ERROR_ACCESS\n' }),
      { code: 'unavailable', message: expect.stringContaining('udev rules') },
    ],
    ['takes too long', () => ended({ exitCode: null, timedOut: true }), { code: 'upstream_timeout' }],
    ['prints no memory', () => ended(), { code: 'upstream' }],
  ])('reports an OpenOCD that %s', async (_, result, error) => {
    await expect(read(async () => result())).rejects.toMatchObject(error)
  })

  test('reports a missing program with the package to install', async () => {
    const missing = () => Promise.reject(new AppError('not_found', "the program 'openocd' is not installed"))
    await expect(read(missing)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('apt-get install openocd') })
  })

  test('throws `aborted` for an aborted reading', async () => {
    const abort = new AbortController()
    const reader = readerWith(async () => {
      abort.abort()
      return ended({ exitCode: null })
    })
    await expect(reader.read([BLOCK], abort.signal)).rejects.toMatchObject({ code: 'aborted' })
  })
})
