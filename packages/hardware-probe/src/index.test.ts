import { AppError, type Spawn } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import feature from './index.ts'
import { F401_MEMORY, F411_MEMORY } from './testing/chip-memory.ts'
import { ended, openocdProcess } from './testing/fake-openocd.ts'

const { signal } = new AbortController()
const C1 = { boards: [{ board: 'board_a' }, { board: 'board_c1' }] }

function partsWith(spawn: Spawn, config: object = {}, host: TestHost = testHost({ spawn })) {
  const parts = feature.build(host, feature.section ? v.parse(feature.section.schema, config) : {})
  const [tool] = parts.tools ?? []
  const [command] = parts.commands ?? []
  const lines: string[] = []
  return {
    lines,
    read: async (input: object, context = toolContext()) => tool?.run(v.parse(tool.input, input), context),
    info: async (board: string) => parts.services?.chipProbe?.info(board, signal),
    command: (args: string[], json = false) =>
      command?.run({
        args,
        cwd: '/',
        by: 'cli:ada',
        json,
        print: (line) => void lines.push(line),
        warn: (line) => void lines.push(line),
        signal,
        addToConfig: async () => {},
        setInConfig: async () => {},
      }),
    check: async () => parts.check?.(signal),
  }
}
const f401 = openocdProcess(F401_MEMORY)

describe('hardware_memory_read', () => {
  test('shows live memory with its source, by default from the start of RAM', async () => {
    const lines = (await partsWith(f401, C1).read({}))?.split('\n') ?? []
    expect(lines[0]).toBe('Live memory of board_c1 (STM32F401RET6), read through OpenOCD (-f board/st_nucleo_f4.cfg):')
    expect(lines[3]).toBe('0x20000020  20 21 22 23 24 25 26 27 28 29 2A 2B 2C 2D 2E 2F   !"#$%&\'()*+,-./')
    expect(lines).toHaveLength(1 + 128 / 16)
  })

  test('reads an unaligned address from the word before, with a note', async () => {
    const lines = (await partsWith(f401, C1).read({ address: '0x20000005', length: 2 }))?.split('\n') ?? []
    expect(lines.slice(1)).toEqual([
      'Read from 0x20000004, because 0x20000005 is not aligned to 4.',
      `0x20000004  04 05 06${' '.repeat(39)}  ...`,
    ])
  })

  test('warns about a chip that is not the one of the board', async () => {
    const { read, info, command, lines, check } = partsWith(openocdProcess(F411_MEMORY), C1)
    const warning = 'The chip is STM32F411xC/xE (identity code 0x10006431), not the STM32F401RET6 of board_c1.'
    expect(await read({})).toContain(warning)
    expect((await info('board_c1'))?.chip).toBe('STM32F411xC/xE (identity code 0x10006431), not the STM32F401RET6 of board_c1')
    expect(await command([])).toBe(0)
    expect(lines).toContain(warning)
    expect(await check()).toMatchObject([{ status: 'warn', fix: expect.stringContaining(warning) }])
  })

  test.each([
    [{ board: 'board_a' }, /chip of board_a \(RP2040\) cannot be read live; live readings need one of board_c1, board_c2/],
    [{ board: 'board_x' }, /Unknown board or chip "board_x"/],
    [{ board: 'board_c1', address: 'here' }, /"here" is not an address/],
    [{ board: 'board_c1', address: '0x20017FF0', length: 17 }, /not within one memory of board_c1/],
  ])('refuses %j before it starts a program', async (input, message) => {
    const { read } = partsWith(() => Promise.reject(new Error('the program was started')))
    await expect(read(input)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
  })

  test.each([{ length: 0 }, { length: 257 }, { length: 1.5 }, { address: 5 }])('rejects the input %j', async (input) => {
    await expect(partsWith(f401, C1).read(input)).rejects.toBeInstanceOf(v.ValiError)
  })

  test('does not guess a board', async () => {
    await expect(partsWith(f401).read({})).rejects.toMatchObject({ message: expect.stringContaining('board_c1, board_c2') })
    await expect(partsWith(f401, { boards: [{ board: 'board_b' }] }).command([])).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('leases the board to the client that reads it', async () => {
    const { read } = partsWith(f401, C1)
    await read({})
    const other = { ...toolContext(), client: 'another' as ReturnType<typeof toolContext>['client'] }
    await expect(read({}, other)).rejects.toMatchObject({ code: 'conflict' })
  })
})

describe('the service chipProbe', () => {
  test('returns what the chip reports about itself', async () => {
    expect(await partsWith(f401).info('board_c1')).toMatchObject({
      chip: 'STM32F401xD/xE (identity code 0x10016433)',
      architecture: 'Arm Cortex-M4 r0p1',
      memory: [
        { name: 'Flash', start: 0x08000000, length: 512 * 1024 },
        { name: 'RAM', start: 0x20000000, length: 96 * 1024 },
      ],
    })
    await expect(partsWith(f401).info('board_b')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('throws `upstream` when no core answers', async () => {
    await expect(partsWith(openocdProcess({})).info('board_c1')).rejects.toMatchObject({ code: 'upstream' })
  })
})

describe('hardware info', () => {
  test.each(['board_c1', 'STM32F401RETx', 'stm32f401ret6'])('shows the chip for --chip %s', async (chip) => {
    const { command, lines } = partsWith(f401)
    expect(await command(['--chip', chip])).toBe(0)
    expect(lines).toEqual([
      'Board:        board_c1',
      'Chip:         STM32F401xD/xE (identity code 0x10016433)',
      'Architecture: Arm Cortex-M4 r0p1',
      'Flash:        0x08000000 to 0x0807FFFF (512 KiB)',
      'RAM:          0x20000000 to 0x20017FFF (96 KiB)',
      'Read live through OpenOCD (-f board/st_nucleo_f4.cfg).',
    ])
  })

  test('prints one object with --json', async () => {
    const { command, lines } = partsWith(f401, C1)
    await command([], true)
    expect(JSON.parse(lines.join(''))).toMatchObject({ board: 'board_c1', architecture: 'Arm Cortex-M4 r0p1', memory: [{}, {}] })
  })

  test.each([['--speed'], ['extra'], ['--chip']])('refuses the argument %s with its usage', async (...args) => {
    await expect(partsWith(f401, C1).command(args)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('usage: hardware info [--chip'),
    })
  })
})

describe('[peripherals.probe.boards]', () => {
  test('reads a board by its own keys', async () => {
    const started: string[] = []
    const spawn: Spawn = (request) => {
      started.push(request.args.slice(0, 2).join(' '))
      return f401(request)
    }
    const { info } = partsWith(spawn, { probe: { openocd: ['-f', 'a.cfg'], boards: { board_c2: { openocd: ['-f', 'b.cfg'] } } } })
    await info('board_c1')
    await info('board_c2')
    expect(started).toEqual(['-f a.cfg', '-f b.cfg'])
  })
})

describe('sluice doctor', () => {
  test('reports the chip, or a failure only when it is configured', async () => {
    const missing: Spawn = () => Promise.reject(new AppError('not_found', 'the program is not installed'))
    expect(await partsWith(f401).check()).toEqual([{ status: 'ok', detail: expect.stringContaining('Cortex-M4') }])
    expect(await partsWith(missing).check()).toMatchObject([{ status: 'warn', detail: expect.stringContaining('apt-get install openocd') }])
    const configured = partsWith(async () => ended({ exitCode: 1 }), { probe: { openocd: ['-f', 'x.cfg'] } })
    expect(await configured.check()).toMatchObject([{ status: 'fail', fix: expect.stringContaining('[peripherals.probe]') }])
  })
})
