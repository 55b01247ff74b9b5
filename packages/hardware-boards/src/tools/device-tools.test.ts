/** The tools for MicroPython boards and for flashing, on a machine with fake boards. */
import { type ClientId, type DeviceRecord, sha256Hex, type ToolReport } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { peripheralsSection } from '../config.ts'
import { uf2Image } from '../flash/testing/uf2-image.ts'
import { boardsFeature } from '../index.ts'
import { drive } from '../repl/testing/drive.ts'
import { ReplBoard, type ReplBoardSettings } from '../repl/testing/repl-board.ts'
import { fakeMachine, type Plugged } from '../testing/fake-machine.ts'

const PICO: Plugged = { path: '/dev/ttyACM0', usb: '2e8a:0005', serialNumber: 'P1', location: '1-1' }
const UNO: Plugged = { path: '/dev/ttyACM1', usb: '2341:0043', serialNumber: 'U1', location: '1-2' }

interface Arranged {
  readonly plugged?: Plugged[]
  readonly repl?: ReplBoardSettings
  readonly files?: Record<string, Uint8Array>
}

const arrange = async ({ plugged = [PICO], repl = {}, files = {} }: Arranged = {}) => {
  const records: DeviceRecord[] = []
  const reports: ToolReport[] = []
  const host = testHost({ services: { audit: async (record) => void records.push(record) } })
  for (const [path, bytes] of Object.entries(files)) await host.by.workspace.write(path, bytes)
  const { machine } = fakeMachine(...plugged)
  const boards: ReplBoard[] = []
  machine.open = async () => {
    const board = new ReplBoard(repl)
    boards.push(board)
    return board.port
  }
  const mounts = { list: async () => [], isMount: async () => false }
  const parts = boardsFeature(machine, mounts).build(host, v.parse(peripheralsSection.schema, {}))
  const abort = new AbortController()
  await drive(host.clock, Promise.resolve(parts.register?.(abort.signal)))
  const tool = (name: string) => {
    const found = parts.tools?.find((candidate) => candidate.name === name)
    if (!found) throw new Error(`The feature has no tool ${name}`)
    return found
  }
  const call = (name: string, input: object = {}, client = 'client') => {
    const context = {
      ...toolContext(abort.signal, host.by),
      client: client as ClientId,
      report: (report: ToolReport) => void reports.push(report),
    }
    return drive(host.clock, Promise.resolve(tool(name).run(v.parse(tool(name).input, input), context)))
  }
  return { call, tool, records, reports, boards, abort, host }
}

const main = (text: string | undefined) => (code: string) => {
  if (!code.includes('hexlify')) return {}
  const bytes = Buffer.from(text ?? '')
  return { stdout: text === undefined ? '-1\r\n' : `${bytes.length}\r\n${bytes.toString('hex')}\r\n` }
}

describe('device_read_code', () => {
  test('shows the program in a longer fence than the program contains', async () => {
    const { call, records } = await arrange({ repl: { execute: main('print("```")\n') } })
    expect(await call('device_read_code')).toBe('main.py on board_a0:\n\n````python\nprint("```")\n````')
    expect(records).toEqual([])
  })

  test('reports a board without a program', async () => {
    const { call } = await arrange({ repl: { execute: main(undefined) } })
    expect(await call('device_read_code')).toContain('There is no program')
  })

  test('restarts a program that was running', async () => {
    const { call, boards } = await arrange({ repl: { program: true, execute: main('x = 1') } })
    expect(await call('device_read_code')).toContain('has been restarted')
    expect(boards.at(-1)?.mode).toBe('running')
  })
})

describe('device_exec', () => {
  test('returns the output, and records the code with its hash', async () => {
    const { call, records, reports } = await arrange({ repl: { execute: () => ({ stdout: '42\r\n' }) } })
    expect(await call('device_exec', { code: 'print(42)' })).toBe('Output from board_a0:\n42')
    expect(reports).toEqual([{ data: '42\n' }])
    expect(records).toMatchObject([
      { detail: { device: 'board_a0', tool: 'device_exec', code: 'print(42)', sha256: sha256Hex('print(42)') } },
    ])
  })

  test('reports a traceback as a failure', async () => {
    const { call, reports } = await arrange({ repl: { execute: () => ({ stderr: 'Traceback\r\nNameError: x\r\n' }) } })
    expect(await call('device_exec', { code: 'x' })).toBe('board_a0 printed nothing.\nError:\nTraceback\nNameError: x')
    expect(reports).toMatchObject([{ failed: true }])
  })

  test('interrupts code that hangs, and says so', async () => {
    const { call, reports } = await arrange({ repl: { execute: () => ({ stdout: 'a\r\n', hangs: true }) } })
    expect(await call('device_exec', { code: 'while True: pass' })).toContain('did not end within 30 s and was interrupted')
    expect(reports).toMatchObject([{ failed: true }])
  })

  test('refuses another client while the board is leased', async () => {
    const { call } = await arrange()
    await call('device_exec', { code: 'x' }, 'one')
    await expect(call('device_exec', { code: 'x' }, 'two')).rejects.toMatchObject({ code: 'conflict' })
  })
})

describe('device_write_code', () => {
  test('writes the program, checks it, and starts it', async () => {
    const code = 'print("hello")'
    const { call, boards, records } = await arrange({
      repl: { execute: (asked) => ({ stdout: asked.includes('digest') ? sha256Hex(code) : '' }) },
    })
    expect(await call('device_write_code', { code })).toContain('14 bytes, checked')
    expect(boards.at(-1)?.softResets).toBe(1)
    expect(records).toMatchObject([{ detail: { tool: 'device_write_code', bytes: 14, sha256: sha256Hex(code) } }])
  })

  test('keeps the old program when the new one was damaged on its way', async () => {
    const { call, boards } = await arrange({
      repl: { execute: (asked) => ({ stdout: asked.includes('digest') ? sha256Hex('other') : '' }) },
    })
    await expect(call('device_write_code', { code: 'x' })).rejects.toMatchObject({ code: 'upstream' })
    expect(boards.at(-1)?.codes.join('\n')).not.toContain('os.rename')
  })
})

describe.each(['device_read_code', 'device_write_code', 'device_exec'])('%s', (name) => {
  const input = name === 'device_read_code' ? {} : { code: 'x' }

  test('lists the USB devices when no board is connected', async () => {
    const { call } = await arrange({ plugged: [] })
    await expect(call(name, input)).rejects.toMatchObject({ code: 'not_found', message: expect.stringContaining('USB shows') })
  })

  test('refuses a board that does not run MicroPython, and records nothing', async () => {
    const { call, records, boards } = await arrange({ plugged: [UNO] })
    await expect(call(name, { ...input, device: 'board_b0' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('not MicroPython'),
    })
    expect(records).toEqual([])
    expect(boards).toEqual([])
  })

  test('takes the only board that fits', async () => {
    const { call } = await arrange({
      plugged: [UNO, PICO],
      repl: { execute: (asked) => ({ stdout: asked.includes('digest') ? sha256Hex('x') : '-1\r\n' }) },
    })
    expect(await call(name, input)).toContain('board_a0')
  })
})

test('tools that interrupt a program have risk execute; flashing always asks', async () => {
  const { tool } = await arrange()
  for (const name of ['device_read_code', 'device_write_code', 'device_exec', 'board_a_flash']) expect(tool(name).risk).toBe('execute')
  expect(tool('board_a_flash').alwaysAsks).toBe(true)
})

describe('board_a_flash', () => {
  test('does nothing without confirm', async () => {
    const { call, boards, records } = await arrange({ files: { 'a.uf2': uf2Image(2) } })
    await expect(call('board_a_flash', { confirm: false, image: 'a.uf2' })).rejects.toMatchObject({
      message: expect.stringContaining('set confirm to true'),
    })
    expect([...boards, ...records]).toEqual([])
  })

  test('refuses an image for another chip before it records anything', async () => {
    const { call, records } = await arrange({ files: { 'a.uf2': uf2Image(2, () => ({ family: 7 })) } })
    await expect(call('board_a_flash', { confirm: true, image: 'a.uf2' })).rejects.toMatchObject({
      message: expect.stringContaining('another chip'),
    })
    expect(records).toEqual([])
  })

  test('says where to get a missing image', async () => {
    const { call } = await arrange()
    await expect(call('board_a_flash', { confirm: true })).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('micropython.org'),
    })
  })

  test('says how to start the boot loader when no board is connected', async () => {
    const { call } = await arrange({ plugged: [UNO], files: { 'a.uf2': uf2Image(2) } })
    await expect(call('board_a_flash', { confirm: true, image: 'a.uf2' })).rejects.toMatchObject({
      message: expect.stringContaining('BOOTSEL'),
    })
    await expect(call('board_a_flash', { confirm: true, image: 'a.uf2', device: 'board_b0' })).rejects.toMatchObject({
      message: expect.stringContaining('not a board_a'),
    })
  })
})

test.each([
  ['device_read_code', {}],
  ['device_exec', { code: 'print()' }],
  ['device_write_code', { code: 'print()' }],
  ['board_a_flash', { confirm: true }],
])('%s refuses a missing device before a person is asked', async (name, input) => {
  const precheck = async (arranged: Awaited<ReturnType<typeof arrange>>) => {
    const tool = arranged.tool(name)
    return drive(arranged.host.clock, (async () => tool.precheck?.(v.parse(tool.input, input), toolContext()))())
  }
  await expect(precheck(await arrange({ plugged: [] }))).rejects.toThrow(/No device was found|No board_a is connected/)
  await expect(precheck(await arrange({ plugged: [UNO] }))).rejects.toThrow(/No device that can do this|No board_a is connected/)
  await expect(precheck(await arrange())).resolves.toBeUndefined()
})
