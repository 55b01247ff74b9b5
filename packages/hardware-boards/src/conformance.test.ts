import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolConformance, toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll, expect, test } from 'vitest'
import { peripheralsSection } from './config.ts'
import { boardsFeature } from './index.ts'
import { ReplBoard } from './repl/testing/repl-board.ts'
import { fakeMachine } from './testing/fake-machine.ts'
import { fastClock } from './testing/fast-clock.ts'

const A = { path: '/dev/ttyACM0', usb: '2e8a:0005', serialNumber: 'e66', location: '1-1' }
const B = { path: '/dev/ttyACM1', usb: '2341:0043', serialNumber: '757', location: '1-2' }
const { machine } = fakeMachine(A, B)

const feature = boardsFeature(
  { ...machine, open: async (path, baud, signal) => (path === A.path ? new ReplBoard().port : machine.open(path, baud, signal)) },
  { list: async () => [], isMount: async () => false },
)
const config = { enabled: true, boards: [{ board: 'board_c1', transport: 'sim' }] }
const dataDir = mkdtempSync(join(tmpdir(), 'boards-'))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))
const host = (): TestHostOverrides => ({ services: { audit: async () => undefined }, clock: fastClock(50), dataDir })
const examples = [
  { tool: 'gpio_write', input: { device: 'board_c0', pin: 2, value: 1 } },
  { tool: 'gpio_read', input: { device: 'board_b0', pin: 2 } },
  { tool: 'device_read_code', input: { device: 'board_a0' } },
  { tool: 'device_write_code', input: { device: 'board_a0', code: 'print(1)' } },
  { tool: 'device_exec', input: { device: 'board_a0', code: 'print(1)' } },
  { tool: 'hardware_board_info', input: {} },
  { tool: 'hardware_memory_map', input: { board: 'board_b' } },
  { tool: 'hardware_capabilities', input: { device: 'board_b0' } },
]

toolConformance({
  feature,
  config,
  host,
  examples,
  except: [
    {
      rule: 'each tool has an example, and the examples work',
      why: 'flashing needs a boot loader, and reading and writing code needs MicroPython; these have tests of their own, and the other tools are tested below',
    },
  ],
})

test.each(examples.filter(({ tool }) => !tool.endsWith('_code')))('the example of $tool works', async ({ tool: name, input }) => {
  const { tools = [], close } = feature.build(testHost(host()), v.parse(peripheralsSection.schema, config))
  const tool = tools.find((candidate) => candidate.name === name)
  expect(tool && (await tool.run(v.parse(tool.input, input), toolContext()))).toMatch(/./)
  await close?.()
})

test('offers the tools of boards once a board was found', async () => {
  const offered = async (...plugged: Parameters<typeof fakeMachine>) => {
    const made = testHost(host())
    const { tools = [], close } = boardsFeature(fakeMachine(...plugged).machine).build(made, v.parse(peripheralsSection.schema, {}))
    const names = () => tools.flatMap(({ name, available }) => (available?.() === false ? [] : [name]))
    const before = names()
    await tools
      .find(({ name }) => name === 'gpio_read')
      ?.run({ pin: 2 }, toolContext())
      .catch(() => undefined)
    await close?.()
    return { before, after: names(), refreshes: made.refreshes }
  }
  expect(await offered()).toEqual({ before: [], after: [], refreshes: [] })
  const found = await offered(B)
  expect(found.before).toEqual([])
  expect(found.after).toEqual(['gpio_write', 'gpio_read', 'board_a_flash', 'device_read_code', 'device_write_code', 'device_exec'])
  expect(found.refreshes).toEqual(['a board was found'])
})
