/** A fake board: its device tree, LED, temperature and interfaces in a temporary folder, and its GPIO chip in memory. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fakeGpio } from '@sluice/hardware/testing/fake-gpio'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { onTestFinished } from 'vitest'
import { sbcFeature } from '../sbc-feature.ts'

export interface FakeBoardOptions {
  readonly model?: string
  readonly label?: string
  readonly lines?: number
  readonly files?: Readonly<Record<string, string>>
}

export const FAKE_LED: Readonly<Record<string, string>> = {
  'sys/class/leds/ACT/trigger': 'none timer [mmc0] heartbeat\n',
  'sys/class/leds/ACT/brightness': '0\n',
}

/** Creates a folder with these files. The caller calls `remove` at the end. */
export function fakeRoot(files: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), 'sbc-'))
  const put = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  for (const [file, text] of Object.entries(files)) put(file, text)
  return {
    root,
    put,
    text: (file: string) => readFileSync(join(root, file), 'utf8'),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Builds the feature on a fake board, a 4B unless given, with the objects that a test inspects. */
export function fakeBoard(options: FakeBoardOptions = {}, overrides: TestHostOverrides = {}) {
  const { model = 'Raspberry Pi 4 Model B Rev 1.4', label = 'pinctrl-bcm2711', lines = 58, files = FAKE_LED } = options
  const { root, put, text, remove } = fakeRoot({ 'proc/device-tree/model': `${model}\0`, ...files })
  onTestFinished(remove)
  const gpio = fakeGpio([
    { path: '/dev/gpiochip0', label: 'expander', lines: 8 },
    { path: '/dev/gpiochip1', label, lines },
  ])
  const records: unknown[] = []
  const host = testHost({
    dataDir: join(root, 'data'),
    services: { audit: async (record) => void records.push(record) },
    ...overrides,
  })
  const parts = sbcFeature({ root, openGpio: async () => gpio }).build(host, {})
  const run = async (name: string, input: object, signal?: AbortSignal, client = 'client') => {
    const tool = parts.tools?.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`unknown tool ${name}`)
    return tool.run(v.parse(tool.input, input), { ...toolContext(signal), client: client as never })
  }
  return { root, put, text, gpio, chip: '/dev/gpiochip1', host, records, parts, run }
}
