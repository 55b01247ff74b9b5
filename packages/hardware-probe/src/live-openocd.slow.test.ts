/** Tests Debian's OpenOCD with an emulated STM32F4, in each way that the feature supports. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { debianProgram } from '@sluice/qa/debian-program'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import feature from './index.ts'
import { type JtagChip, startJtagChip } from './testing/jtag-chip.ts'
import { listen } from './testing/listen.ts'
import { COUNTER } from './testing/pattern.ts'
import { findQemu, type QemuChip, startQemuChip } from './testing/qemu-chip.ts'
import { runUnconfined } from './testing/run-unconfined.ts'
import { CHIP_MODELS } from './testing/stm32-memory.ts'

const wanted = process.env.SLUICE_HARDWARE === '1'
const qemu = wanted ? await findQemu() : { missing: 'SLUICE_HARDWARE=1 is not set' }
const openocd = wanted
  ? await debianProgram({ packages: ['openocd'], program: 'usr/bin/openocd' })
  : { missing: 'SLUICE_HARDWARE=1 is not set' }
const skipReason = 'missing' in qemu ? ` (${qemu.missing})` : 'missing' in openocd ? ` (${openocd.missing})` : ''
const signal = new AbortController().signal
const BOARDS = [
  ['board_c1', CHIP_MODELS.f401re, 'STM32F401xD/xE (identity code 0x10016433)', 96],
  ['board_c2', CHIP_MODELS.f411re, 'STM32F411xC/xE (identity code 0x10006431)', 128],
] as const

const attachTo = (port: number): string[] => [
  ...['-c', 'adapter driver remote_bitbang', '-c', `remote_bitbang host 127.0.0.1; remote_bitbang port ${port}`],
  ...['-f', 'target/stm32f4x.cfg', '-c', 'reset_config none'],
]

function partsWith(probe: object) {
  const host = testHost({ spawn: runUnconfined('env' in openocd ? openocd.env : {}) })
  // Programs take real time, so the time limit is long.
  const config = feature.section ? v.parse(feature.section.schema, { probe: { timeout_secs: 60, ...probe } }) : {}
  const { tools: [tool] = [], services } = feature.build(host, config)
  return {
    info: (board: string) => services?.chipProbe?.info(board, signal),
    memory: (input: object) => tool?.run({ address: '0x20000000', length: 128, ...input }, toolContext()),
  }
}

describe.skipIf(skipReason !== '')(`OpenOCD${skipReason}`, () => {
  describe.each(BOARDS)('%s', (board, model, chipName, ramKib) => {
    let chip: QemuChip
    let jtag: JtagChip
    beforeAll(async () => {
      if ('missing' in qemu) return
      chip = await startQemuChip(qemu)
      jtag = await startJtagChip(chip.gdb, model)
    })
    afterAll(async () => {
      await jtag?.close()
      await chip?.stop()
    })

    const expectReadings = async ({ info, memory }: ReturnType<typeof partsWith>) => {
      expect(await info(board)).toMatchObject({
        chip: chipName,
        architecture: 'Arm Cortex-M4 r0p0',
        memory: [
          { name: 'Flash', start: 0x08000000, length: 512 * 1024 },
          { name: 'RAM', start: 0x20000000, length: ramKib * 1024 },
        ],
      })
      const shown = await memory({ board })
      expect(shown).toContain('0x20000000  4C 49 56 45 20 52 41 4D 20 50 41 54 54 45 52 4E  LIVE RAM PATTERN')
      expect(shown).toContain('0x20000020  00 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00  ................')
      const counter = () => memory({ board, address: String(COUNTER), length: 4 })
      const first = await counter()
      expect(await chip.isRunning()).toBe(true)
      expect(await counter()).not.toBe(first)
      const other = board === 'board_c1' ? 'board_c2' : 'board_c1'
      expect(await memory({ board: other })).toContain(`The chip is ${chipName}, not the`)
      expect((await info(other))?.chip).toContain(`${chipName}, not the`)
      expect(await chip.isRunning()).toBe(true)
    }

    test('is started for each reading and ends with it', async () => {
      if ('missing' in openocd) return
      await expectReadings(partsWith({ openocd_program: openocd.path, openocd: attachTo(jtag.port), openocd_network: true }))
    })

    test('is used through its TCL port and its GDB port while it runs', async () => {
      if ('missing' in openocd) return
      const [tcl, gdb] = [await freePort(), await freePort()]
      const ports = ['-c', `tcl_port ${tcl}; gdb_port ${gdb}; telnet_port disabled`]
      const child = spawn(openocd.path, [...ports, ...attachTo(jtag.port)], {
        env: { ...process.env, ...openocd.env },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const ended = once(child, 'exit')
      try {
        for await (const line of createInterface(child.stderr)) if (/Listening on port \d+ for gdb/.test(line)) break
        child.stderr.resume()
        await expectReadings(partsWith({ openocd_tcl: `127.0.0.1:${tcl}` }))
        await expectReadings(partsWith({ gdb: `127.0.0.1:${gdb}` }))
      } finally {
        child.kill('SIGKILL')
        await ended
      }
    })

    test('reports its own error for a wrong configuration', async () => {
      if ('missing' in openocd) return
      const { info } = partsWith({ openocd_program: openocd.path, openocd: ['-f', 'board/no-such-board.cfg'] })
      await expect(info(board)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('no-such-board.cfg') })
      const stock = partsWith({ openocd_program: openocd.path })
      await expect(stock.info(board)).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining('OpenOCD cannot reach the chip'),
      })
    })
  })
})

async function freePort(): Promise<number> {
  const { port, close } = await listen(createServer())
  await close()
  return port
}
