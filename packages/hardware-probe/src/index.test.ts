import { AppError, type Spawn } from '@sluice/sdk'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { expect, test } from 'vitest'
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
      command?.run({ args, json, print: (line) => void lines.push(line), warn: (line) => void lines.push(line), signal }),
    check: async () => parts.check?.(signal),
  }
}
const f401 = openocdProcess(F401_MEMORY)

test('§2.7 the tool shows live memory, with its source, from the start of RAM unless told otherwise', async () => {
  const lines = (await partsWith(f401, C1).read({}))?.split('\n') ?? []
  expect(lines[0]).toBe('Live memory of board_c1 (STM32F401RET6), read through OpenOCD (-f board/st_nucleo_f4.cfg):')
  expect(lines[3]).toBe('0x20000020  20 21 22 23 24 25 26 27 28 29 2A 2B 2C 2D 2E 2F   !"#$%&\'()*+,-./')
  expect(lines).toHaveLength(1 + 128 / 16)
})

test('§2.7 what is not aligned is read from the word before, and said so', async () => {
  const lines = (await partsWith(f401, C1).read({ address: '0x20000005', length: 2 }))?.split('\n') ?? []
  expect(lines.slice(1)).toEqual(['Read from 0x20000004 on: 0x20000005 is not aligned to 4.', `0x20000004  04 05 06${' '.repeat(39)}  ...`])
})

test('§2.7 another chip than that of the board is told, with what it is', async () => {
  const { read, info, command, lines, check } = partsWith(openocdProcess(F411_MEMORY), C1)
  const told = 'The chip is STM32F411xC/xE (identity code 0x10006431), not the STM32F401RET6 of board_c1.'
  expect(await read({})).toContain(told)
  expect((await info('board_c1'))?.chip).toBe('STM32F411xC/xE (identity code 0x10006431), not the STM32F401RET6 of board_c1')
  expect(await command([])).toBe(0)
  expect(lines).toContain(told)
  expect(await check()).toMatchObject([{ status: 'warn', fix: expect.stringContaining(told) }])
})

test.each([
  [{ board: 'board_a' }, /chip of board_a \(RP2040\) cannot be read live; live readings need one of board_c1, board_c2/],
  [{ board: 'board_x' }, /no board or chip "board_x"/],
  [{ board: 'board_c1', address: 'here' }, /"here" is no address/],
  [{ board: 'board_c1', address: '0x20017FF0', length: 17 }, /not within one memory of board_c1/],
])('what cannot be read is refused before anything is started: %j', async (input, message) => {
  const { read } = partsWith(() => Promise.reject(new Error('it was started')))
  await expect(read(input)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
})

test.each([{ length: 0 }, { length: 257 }, { length: 1.5 }, { address: 5 }])('a call with %j is none', async (input) => {
  await expect(partsWith(f401, C1).read(input)).rejects.toBeInstanceOf(v.ValiError)
})

test('no board is guessed', async () => {
  await expect(partsWith(f401).read({})).rejects.toMatchObject({ message: expect.stringContaining('board_c1, board_c2') })
  await expect(partsWith(f401, { boards: [{ board: 'board_b' }] }).command([])).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a board is leased to the client that reads it', async () => {
  const { read } = partsWith(f401, C1)
  await read({})
  const other = { ...toolContext(), client: 'another' as ReturnType<typeof toolContext>['client'] }
  await expect(read({}, other)).rejects.toMatchObject({ code: 'conflict' })
})

test('§2.7 the service gives what the chip says of itself', async () => {
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

test('a chip without a core is no chip', async () => {
  await expect(partsWith(openocdProcess({})).info('board_c1')).rejects.toMatchObject({ code: 'upstream' })
})

test.each(['board_c1', 'STM32F401RETx', 'stm32f401ret6'])('§2.7 `hardware info --chip %s` shows the chip', async (chip) => {
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

test('`hardware info --json` prints one object', async () => {
  const { command, lines } = partsWith(f401, C1)
  await command([], true)
  expect(JSON.parse(lines.join(''))).toMatchObject({ board: 'board_c1', architecture: 'Arm Cortex-M4 r0p1', memory: [{}, {}] })
})

test.each([['--speed'], ['extra'], ['--chip']])('`hardware info %s` is refused with its usage', async (...args) => {
  await expect(partsWith(f401, C1).command(args)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('usage: hardware info [--chip'),
  })
})

test('§2.6 a board of its own way is read by that', async () => {
  const asked: string[] = []
  const spawn: Spawn = (request) => {
    asked.push(request.args.slice(0, 2).join(' '))
    return f401(request)
  }
  const { info } = partsWith(spawn, { probe: { openocd: ['-f', 'a.cfg'], boards: { board_c2: { openocd: ['-f', 'b.cfg'] } } } })
  await info('board_c1')
  await info('board_c2')
  expect(asked).toEqual(['-f a.cfg', '-f b.cfg'])
})

test('doctor says what answers, or what to do: a failure only where it is configured', async () => {
  const missing: Spawn = () => Promise.reject(new AppError('not_found', 'no such program'))
  expect(await partsWith(f401).check()).toEqual([{ status: 'ok', detail: expect.stringContaining('Cortex-M4') }])
  expect(await partsWith(missing).check()).toMatchObject([{ status: 'warn', detail: expect.stringContaining('apt-get install openocd') }])
  const configured = partsWith(async () => ended({ exitCode: 1 }), { probe: { openocd: ['-f', 'x.cfg'] } })
  expect(await configured.check()).toMatchObject([{ status: 'fail', fix: expect.stringContaining('[peripherals.probe]') }])
})
