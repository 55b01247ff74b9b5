/** The commands on a machine with fake boards. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AppError, CATALOGUE, type ConfigAddition, type DeviceRecord, type SpawnRequest, type SpawnResult, sha256Hex } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import type { Port } from '../devices.ts'
import { uf2Image } from '../flash/testing/uf2-image.ts'
import { boardsFeature } from '../index.ts'
import { drive } from '../repl/testing/drive.ts'
import { ReplBoard, type ReplBoardSettings } from '../repl/testing/repl-board.ts'
import { fakeMachine, type Plugged } from '../testing/fake-machine.ts'

const UNO: Plugged = { path: '/dev/ttyACM1', usb: '2341:0043', serialNumber: 'U1', location: '1-2' }
const PICO: Plugged = { path: '/dev/ttyACM0', usb: '2e8a:0005', serialNumber: 'P1', location: '1-1' }

interface Arranged {
  readonly plugged?: Plugged[]
  readonly config?: object
  readonly repl?: ReplBoardSettings
  readonly answers?: (string | undefined)[]
  readonly spawned?: Partial<SpawnResult>
}

let dataDir = ''
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-commands-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const arrange = ({ plugged = [PICO, UNO], config = {}, repl, answers, spawned = {} }: Arranged = {}) => {
  const added: ConfigAddition[] = []
  const records: DeviceRecord[] = []
  const spawns: SpawnRequest[] = []
  const host = testHost({
    dataDir,
    services: {
      audit: async (record) => void records.push(record),
    },
    spawn: async (request) => {
      spawns.push(request)
      for (const text of ['Writing | ### | 50%\rWriti', 'ng | ###', '###', ' | 100%\n\n', 'done']) request.onOutput?.('stderr', text)
      return { exitCode: 0, signal: null, timedOut: false, stdout: '', stderr: '', truncated: false, sandbox: 'none', ...spawned }
    },
  })
  const { machine } = fakeMachine(...plugged)
  const board = repl && new ReplBoard(repl)
  const open = machine.open
  machine.open = async (path, baud, signal): Promise<Port> => (board && path === PICO.path ? board.port : open(path, baud, signal))
  const parts = boardsFeature(machine).build(host, v.parse(peripheralsSection.schema, config))
  const out: string[] = []
  const err: string[] = []
  const questions: string[] = []
  const run = async (line: string, ...args: string[]) => {
    const words = line.split(' ')
    const json = words.includes('--json')
    const command = parts.commands?.find(({ name }) => line.startsWith(name))
    if (!command) throw new Error(`The feature has no command for ${line}`)
    const ask = async (question: string) => {
      questions.push(question)
      return answers?.shift()
    }
    const work = command.run({
      args: [...words.slice(2).filter((word) => word !== '--json'), ...args],
      json,
      cwd: dataDir,
      by: 'cli:ada',
      addToConfig: async (addition) => void added.push(addition),
      setInConfig: async () => {},
      print: (text) => void out.push(text),
      warn: (text) => void err.push(text),
      signal: new AbortController().signal,
      ...(answers ? { ask } : {}),
    })
    return drive(host.clock, work)
  }
  const file = (name: string, bytes: Uint8Array | string) => {
    const path = join(dataDir, name)
    writeFileSync(path, bytes)
    return path
  }
  return { run, out, err, added, records, spawns, questions, board, file, text: () => out.join('\n') }
}

test('the help of the commands covers the catalogue', () => {
  const { commands, commandHelp } = CATALOGUE['hardware-boards']
  expect(Object.keys(commandHelp).toSorted()).toEqual([...commands].toSorted())
})

describe('hardware discover', () => {
  test('lists the USB devices, the boards by alias, and the known boards', async () => {
    // /dev/null can be opened on every machine; the other ports do not exist.
    const { run, text } = arrange({ plugged: [PICO, { ...UNO, path: '/dev/null' }, { path: '/dev/ttyUSB9', usb: 'dead:beef' }] })
    expect(await run('hardware discover')).toBe(0)
    expect(text()).toMatch(/2e8a:0005 {2}board_a/)
    expect(text()).toMatch(/dead:beef {2}\(unknown\)/)
    expect(text()).toMatch(/board_b0 .*\/dev\/null .*ATmega328P.*connected/)
    expect(text()).toMatch(/board_a0 .*cannot be opened: There is no \/dev\/ttyACM0/)
    expect(text()).toContain('Known boards: board_a (RP2040)')
  })

  test('is JSON with --json', async () => {
    const { run, text } = arrange()
    await run('hardware discover --json')
    expect(JSON.parse(text())).toMatchObject({
      usb: [{ vendor: '2e8a', board: 'board_a' }, { board: 'board_b' }],
      devices: [{ alias: 'board_a0', connected: true, usb: { serialNumber: 'P1' } }, { alias: 'board_b0' }],
    })
  })

  test('reports that USB shows no devices', async () => {
    const { run, text } = arrange({ plugged: [] })
    expect(await run('hardware discover')).toBe(0)
    expect(text()).toContain('USB shows no devices')
  })
})

describe('hardware introspect', () => {
  test('opens the port and shows the answer of the firmware', async () => {
    const { run, text } = arrange()
    expect(await run('hardware introspect /dev/ttyACM1 --json')).toBe(0)
    expect(JSON.parse(text())).toMatchObject({ path: '/dev/ttyACM1', alias: 'board_b0', board: 'board_b', usb: '2341:0043', silence: null })
    expect(JSON.parse(text()).firmware).not.toBeNull()
  })

  test('asks for MicroPython when no firmware answers', async () => {
    const { run, text } = arrange({ repl: { execute: () => ({ stdout: '1.24.1\r\nrp2\r\nRaspberry Pi Pico with RP2040\r\n' }) } })
    expect(await run('hardware introspect /dev/ttyACM0')).toBe(0)
    expect(text()).toContain('MicroPython:   1.24.1 on rp2 (Raspberry Pi Pico with RP2040)')
  })

  test('fails when nothing answers, and still shows the board', async () => {
    const { run, text } = arrange({ repl: { instead: 'silence' } })
    expect(await run('hardware introspect /dev/ttyACM0')).toBe(1)
    expect(text()).toMatch(/Board: +board_a \(RP2040\)[\s\S]*none: .*does not answer/)
  })

  test('refuses a path that does not exist', async () => {
    await expect(arrange().run('hardware introspect /dev/ttyACM7')).rejects.toMatchObject({ code: 'not_found' })
  })

  test.each([[], ['a', 'b'], ['--chip', 'x']])('shows its usage for the arguments %j', async (...args) => {
    await expect(arrange().run('hardware introspect', ...args)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('usage: sluice hardware introspect <path>'),
    })
  })
})

describe('peripheral add', () => {
  test.each([
    ['board_a /dev/ttyACM0', { board: 'board_a', transport: 'serial', path: '/dev/ttyACM0' }],
    ['sbc native', { board: 'sbc', transport: 'native' }],
    ['board_c1 sim', { board: 'board_c1', transport: 'sim' }],
    ['board_b_q 127.0.0.1:9999', { board: 'board_b_q', transport: 'bridge', path: '127.0.0.1:9999' }],
  ])('writes %s to the configuration', async (words, entry) => {
    const { run, added } = arrange()
    expect(await run(`peripheral add ${words}`)).toBe(0)
    expect(added).toEqual([{ list: 'peripherals.boards', entry, set: { 'peripherals.enabled': true } }])
  })

  test.each([
    ['board_x /dev/ttyACM0', 'board_x'],
    ['board_a /dev/sda', 'is not a place of a board'],
    ['board_a /dev/ttyACM0/../sda', 'is not a place of a board'],
    ['board_a host:99999', 'is not a place of a board'],
    ['board_a user@host:99', 'is not a place of a board'],
    ['sbc sim', 'sbc is this machine'],
    ['sbc /dev/ttyACM0', 'sbc is this machine'],
    ['board_a native', 'sbc is this machine'],
    ['board_a', 'usage'],
  ])('refuses %s', async (words, says) => {
    const { run, added } = arrange()
    await expect(run(`peripheral add ${words}`)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining(says) })
    expect(added).toEqual([])
  })

  test('adds a port without a device, with a warning', async () => {
    const { run, added, err } = arrange()
    expect(await run('peripheral add board_d /dev/ttyUSB0')).toBe(0)
    expect(added).toHaveLength(1)
    expect(err.join()).toContain('There is no /dev/ttyUSB0 now')
  })

  test('refuses a path that is not a device', async () => {
    const { machine } = fakeMachine(PICO)
    machine.check = async () => {
      throw new AppError('forbidden', '/dev/ttyACM0 is not a device')
    }
    const parts = boardsFeature(machine).build(testHost(), v.parse(peripheralsSection.schema, {}))
    const command = parts.commands?.find(({ name }) => name === 'peripheral add')
    const context = {
      args: ['board_a', '/dev/ttyACM0'],
      cwd: dataDir,
      by: 'cli:ada',
      addToConfig: async () => {},
      setInConfig: async () => {},
      json: false,
      print: () => {},
      warn: () => {},
      signal: new AbortController().signal,
    }
    await expect(command?.run(context)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('reports a configured board, and refuses the port of another one', async () => {
    const config = { enabled: true, boards: [{ board: 'board_a', path: '/dev/ttyACM0' }] }
    const { run, added, text } = arrange({ config })
    expect(await run('peripheral add board_a /dev/ttyACM0')).toBe(0)
    expect(text()).toContain('already configured')
    await expect(run('peripheral add board_d /dev/ttyACM0')).rejects.toMatchObject({ code: 'conflict' })
    expect(added).toEqual([])
  })

  test('says how to use a board that is configured but not enabled', async () => {
    const { run, text } = arrange({ config: { boards: [{ board: 'board_a', path: '/dev/ttyACM0' }] } })
    expect(await run('peripheral add board_a /dev/ttyACM0')).toBe(0)
    expect(text()).toContain('already configured, but not used: set enabled = true under [peripherals]')
  })

  test('shows the found boards at a terminal and asks for one', async () => {
    const { run, added, text } = arrange({ answers: ['2'] })
    expect(await run('peripheral add')).toBe(0)
    expect(text()).toMatch(/1\..*board_a0[\s\S]*2\..*board_b0/)
    expect(added).toMatchObject([{ entry: { board: 'board_b', transport: 'serial', path: '/dev/ttyACM1' } }])
  })

  test('asks again after a wrong answer, and adds nothing without an answer', async () => {
    const { run, added, questions } = arrange({ plugged: [], answers: ['nowhere', 'board_a', 'sim', 'board_a'] })
    expect(await run('peripheral add')).toBe(0)
    expect(questions).toHaveLength(4)
    expect(added).toMatchObject([{ entry: { board: 'board_a', transport: 'sim' } }])
    const other = arrange({ answers: [''] })
    expect(await other.run('peripheral add')).toBe(1)
    expect(other.added).toEqual([])
  })
})

describe('peripheral list', () => {
  test('shows the configured and the connected boards', async () => {
    const config = {
      boards: [
        { board: 'board_a', path: '/dev/ttyACM0' },
        { board: 'sbc', transport: 'native' },
      ],
    }
    const { run, text, err } = arrange({ config })
    expect(await run('peripheral list')).toBe(0)
    expect(text()).toMatch(/board_a +serial +\/dev\/ttyACM0\n +sbc +native +\(native\)/)
    expect(err.join()).toContain('enabled = true')
  })

  test('says how to add a board when none is configured', async () => {
    const { run, text } = arrange({ plugged: [] })
    expect(await run('peripheral list')).toBe(0)
    expect(text()).toContain("'sluice peripheral add'")
  })
})

describe('peripheral flash', () => {
  const goodHex = ':03000000010203F7\n:00000001FF\n'
  /** A binary for a board_c: the top of its stack, its entry point, and code. */
  const goodBin = (stack = 0x20018000, start = 0x08000009) => {
    const image = Buffer.alloc(100)
    image.writeUInt32LE(stack, 0)
    image.writeUInt32LE(start, 4)
    return image
  }

  test('flashes a board_b with avrdude, in a sandbox that has only its port', async () => {
    const { run, spawns, records, err, file, text } = arrange({ spawned: { sandbox: 'jail' } })
    const image = file('blink.hex', goodHex)
    expect(await run('peripheral flash board_b0 --image', image)).toBe(0)
    expect(spawns).toMatchObject([{ file: 'avrdude', policy: { writable: [], network: false, devices: ['/dev/ttyACM1'] } }])
    expect(spawns[0]?.args.join(' ')).toBe(`-p m328p -c arduino -P /dev/ttyACM1 -b 115200 -D -U flash:w:${image}:i`)
    expect(records).toMatchObject([{ detail: { device: 'board_b0', tool: 'peripheral flash', bytes: goodHex.length } }])
    expect(err).toEqual(['Writing | ### | 50%', 'Writing | ###### | 100%', 'done'])
    expect(text()).toContain('Flashed 3 bytes')
  })

  test('flashes a board_c by OpenOCD', async () => {
    const { run, spawns, file } = arrange({ plugged: [{ path: '/dev/ttyACM2', usb: '0483:374b' }] })
    const image = file('firmware.bin', goodBin())
    expect(await run('peripheral flash board_c1 --image', image)).toBe(0)
    expect(spawns[0]?.args.at(-1)).toBe(`program {${image}} verify reset exit 0x08000000`)
  })

  test('measures an Intel HEX image by the bytes it writes, not by its text', async () => {
    const { run, spawns, file } = arrange({ plugged: [{ path: '/dev/ttyACM2', usb: '0483:374b' }] })
    const hex = `:020000040800F2\n${':10000000000102030405060708090A0B0C0D0E0F78\n'.repeat(15_000)}:00000001FF\n`
    expect(await run('peripheral flash board_c1 --image', file('firmware.hex', hex))).toBe(0)
    expect(spawns).toHaveLength(1)
    await expect(run('peripheral flash board_c1 --image', file('uno.hex', goodHex))).rejects.toMatchObject({
      message: expect.stringContaining('outside of flash'),
    })
  })

  test('writes only to the named one of several boards with a debug probe', async () => {
    const nucleo = (number: number, product: string) => ({
      path: `/dev/ttyACM${number}`,
      usb: `0483:${product}`,
      serialNumber: `066${number}FF`,
      location: `1-${number}`,
    })
    const { run, spawns, file } = arrange({ plugged: [nucleo(3, '3748'), nucleo(4, '3748'), nucleo(5, '374b')] })
    const image = file('firmware.bin', goodBin())
    expect(await run('peripheral flash board_c2 --port /dev/ttyACM4 --image', image)).toBe(0)
    expect(spawns[0]?.args.join(' ')).toContain('adapter serial 0664FF')
    await expect(run('peripheral flash board_c2 --image', image)).rejects.toMatchObject({
      message: expect.stringContaining('alias of board_c1'),
    })
    await expect(run('peripheral flash board_c1 --image', image)).rejects.toMatchObject({
      message: expect.stringContaining('alias of board_c2'),
    })
    const alone = arrange({ plugged: [nucleo(3, '3748')] })
    await expect(alone.run('peripheral flash board_c1 --image', image)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('board_c0 is connected and would be overwritten'),
    })
    expect([...spawns.slice(1), ...alone.spawns]).toEqual([])
  })

  test('writes a .py file as the program of a MicroPython board', async () => {
    const { run, file, records, board, spawns } = arrange({
      repl: { execute: (code) => ({ stdout: code.includes('digest') ? sha256Hex('print(1)\n') : '' }) },
    })
    expect(await run('peripheral flash board_a0 --image', file('main.py', 'print(1)\n'))).toBe(0)
    expect(board?.codes.join('\n')).toContain(Buffer.from('print(1)\n').toString('base64'))
    expect(board?.softResets).toBe(1)
    expect(records).toHaveLength(1)
    expect(spawns).toEqual([])
  })

  test('writes a .py file byte for byte, even when it is not UTF-8', async () => {
    const bytes = Buffer.from('# caf\xe9\n', 'latin1')
    const { run, file, board } = arrange({
      repl: { execute: (code) => ({ stdout: code.includes('digest') ? sha256Hex(bytes) : '' }) },
    })
    expect(await run('peripheral flash board_a0 --image', file('main.py', bytes))).toBe(0)
    expect(board?.codes.join('\n')).toContain(bytes.toString('base64'))
  })

  test.each<[what: string, words: string, name: string, bytes: Uint8Array | string, code: string, says: string]>([
    ['an image for another chip', 'board_a0', 'x.uf2', uf2Image(2, () => ({ family: 1 })), 'invalid_request', 'another chip'],
    ['a file that is not Intel HEX', 'board_b0', 'x.hex', 'hello', 'invalid_request', 'not an Intel HEX'],
    ['a program for a board without MicroPython', 'board_b0', 'x.py', 'print(1)', 'invalid_request', 'does not run MicroPython'],
    ['a program for a board without MicroPython or port', 'board_c1', 'x.py', 'x', 'invalid_request', 'MicroPython'],
    ['a board with a system of its own', 'board_b_q', 'x.hex', goodHex, 'invalid_request', 'system of its own'],
    ['an unknown board', 'board_z', 'x.hex', goodHex, 'invalid_request', 'board_z'],
    ['this machine', 'sbc', 'x.hex', goodHex, 'invalid_request', 'sbc is this machine'],
    ['MicroPython itself for board_d', 'board_d', 'x.bin', 'x', 'invalid_request', 'esptool'],
    ['a path with braces', 'board_c1', '{exit}.bin', 'x', 'invalid_request', 'braces'],
    ['an empty binary', 'board_c1', 'x.bin', '', 'invalid_request', 'not a program for board_c1'],
    ['a binary that is no program', 'board_c1', 'x.bin', Buffer.alloc(100), 'invalid_request', 'not a program for board_c1'],
    ['a binary for more memory', 'board_c1', 'x.bin', goodBin(0x20020000), 'invalid_request', 'not a program for board_c1'],
    [
      'a binary with a wrong entry point',
      'board_c1',
      'x.bin',
      goodBin(0x20018000, 0x10000101),
      'invalid_request',
      'not a program for board_c1',
    ],
    ['a binary larger than the flash', 'board_c1', 'x.bin', Buffer.alloc(600_000), 'too_large', 'larger'],
  ])('refuses %s before it writes or records anything', async (_, board, name, bytes, code, says) => {
    const { run, spawns, records, file } = arrange()
    await expect(run(`peripheral flash ${board} --image`, file(name, bytes))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(says),
    })
    expect(spawns).toEqual([])
    expect(records).toEqual([])
  })

  test('says where to get a missing image', async () => {
    await expect(arrange().run('peripheral flash board_a')).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('micropython.org'),
    })
    await expect(arrange().run('peripheral flash board_b')).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('firmware/README.md'),
    })
  })

  test('reports the last output lines of a failed program', async () => {
    const { run, file } = arrange({ spawned: { exitCode: 1, stderr: 'avrdude: stk500_recv(): programmer is not responding\n' } })
    await expect(run('peripheral flash board_b --image', file('x.hex', goodHex))).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('programmer is not responding'),
    })
  })
})
