/** Tests the GDB client with the real server of QEMU, and compares it with Debian's GDB. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { debianProgram } from '@sluice/qa/debian-program'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GdbReader } from './gdb/gdb-reader.ts'
import feature from './index.ts'
import { COUNTER, PATTERN_TEXT, RAM_START, SQUARES, SQUARES_BYTES } from './testing/pattern.ts'
import { findQemu, type QemuChip, startQemuChip } from './testing/qemu-chip.ts'

const qemu = await findQemu()
const gdb = await debianProgram({ packages: ['gdb-multiarch'], program: 'usr/bin/gdb-multiarch' })
const signal = new AbortController().signal

describe.skipIf('missing' in qemu)(`an emulated chip${'missing' in qemu ? ` (${qemu.missing})` : ''}`, () => {
  let chip: QemuChip
  beforeAll(async () => {
    if ('path' in qemu) chip = await startQemuChip(qemu)
  })
  afterAll(() => chip?.stop())

  const read = async (address: number, length: number): Promise<Buffer> => {
    const reader = new GdbReader(testHost(), chip.gdb, 5000)
    const [bytes] = await reader.read([{ address, length, width: 4 }], signal)
    return Buffer.from(bytes ?? [])
  }

  test('is read while it runs, and runs on', async () => {
    expect((await read(RAM_START, 16)).toString()).toBe(PATTERN_TEXT)
    expect(await read(SQUARES, 64)).toEqual(SQUARES_BYTES)
    const first = await read(COUNTER, 4)
    expect(await chip.isRunning()).toBe(true)
    expect(await read(COUNTER, 4)).not.toEqual(first)
    expect(await chip.isRunning()).toBe(true)
  })

  test('is shown by the tool with a warning about its missing identity code', async () => {
    const config = feature.section ? v.parse(feature.section.schema, { probe: { gdb: chip.gdb } }) : {}
    const [tool] = feature.build(testHost(), config).tools ?? []
    const shown = await tool?.run({ address: '0x20000000', length: 16, board: 'board_c1' }, toolContext())
    expect(shown).toContain('Live memory of board_c1 (STM32F401RET6), read through the GDB server at 127.0.0.1:')
    expect(shown).toContain('identity code cannot be read')
    expect(shown).toContain('0x20000000  4C 49 56 45 20 52 41 4D 20 50 41 54 54 45 52 4E  LIVE RAM PATTERN')
    expect(await chip.isRunning()).toBe(true)
  })

  test('refuses memory that does not exist, and runs on', async () => {
    expect(await read(0x30000000, 4)).toHaveLength(0)
    expect(await chip.isRunning()).toBe(true)
  })

  test.skipIf('missing' in gdb)(`is read the same by Debian's GDB${'missing' in gdb ? ` (${gdb.missing})` : ''}`, async () => {
    if ('missing' in gdb) return
    const folder = await mkdtemp(join(tmpdir(), 'gdb-'))
    try {
      const commands = [`target remote ${chip.gdb}`, `dump binary memory squares ${SQUARES} ${SQUARES + 64}`, 'detach']
      await promisify(execFile)(gdb.path, ['-batch', '-nx', ...commands.flatMap((command) => ['-ex', command])], {
        // GDB takes no path with a space.
        cwd: folder,
        env: { ...process.env, ...gdb.env },
      })
      expect(await read(SQUARES, 64)).toEqual(await readFile(join(folder, 'squares')))
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
