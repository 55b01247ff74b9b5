import { AppError, type Spawn, type SpawnRequest, type SpawnResult } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { F401_MEMORY } from '../testing/chip-memory.ts'
import { ended, openocdProcess } from '../testing/fake-openocd.ts'
import { createRunReader } from './run-reader.ts'

const BLOCK = { address: 0x20000000, length: 8, width: 4 } as const
const { signal } = new AbortController()
const readerWith = (spawn: Spawn) =>
  createRunReader({ program: 'openocd', args: ['-f', 'board/st_nucleo_f4.cfg'], network: false, timeoutMs: 5000, spawn })
const read = (spawn: Spawn) => readerWith(spawn).read([BLOCK], signal)

test('one process reads all blocks, opens no port, and ends by itself', async () => {
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
    'is not there in the sandbox',
    () => ended({ exitCode: 127, stderr: 'openocd: not found' }),
    { message: expect.stringContaining('install OpenOCD') },
  ],
  [
    'finds no probe',
    () => ended({ exitCode: 1, stderr: 'Open On-Chip Debugger 0.12.0\nInfo : clock\nError: open failed\n' }),
    { code: 'unavailable', message: 'OpenOCD reaches no chip: open failed' },
  ],
  [
    'may not open the probe',
    () => ended({ exitCode: 1, stderr: 'Open On-Chip Debugger 0.12.0\nError: libusb_open() failed with LIBUSB_ERROR_ACCESS\n' }),
    { code: 'unavailable', message: expect.stringContaining('udev rules') },
  ],
  ['takes too long', () => ended({ exitCode: null, timedOut: true }), { code: 'upstream_timeout' }],
  ['says nothing of what it has read', () => ended(), { code: 'upstream' }],
])('an OpenOCD that %s is told', async (_, result, error) => {
  await expect(read(async () => result())).rejects.toMatchObject(error)
})

test('a program that is missing is told with what to install', async () => {
  const missing = () => Promise.reject(new AppError('not_found', "there is no program 'openocd'"))
  await expect(read(missing)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('apt-get install openocd') })
})

test('an aborted reading is told as such', async () => {
  const abort = new AbortController()
  const reader = readerWith(async () => {
    abort.abort()
    return ended({ exitCode: null })
  })
  await expect(reader.read([BLOCK], abort.signal)).rejects.toMatchObject({ code: 'aborted' })
})
