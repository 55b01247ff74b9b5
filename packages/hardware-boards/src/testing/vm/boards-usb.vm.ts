/** Boards on a real USB bus: discovery, aliases, calls through serialport, and unplugging. */
import assert from 'node:assert/strict'
import { eventually } from '@sluice/qa/vm/devices/guest-files'
import { createUsbBoard, type UsbBoardIdentity, usbBoardModules } from '@sluice/qa/vm/devices/usb-board'
import { liveHost } from '@sluice/qa/vm/live-host'
import { vmCase } from '@sluice/qa/vm/vm-case'
import type { Host } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { peripheralsSection } from '../../config.ts'
import { Registry } from '../../registry/registry.ts'
import { boardWithFirmware, type PluggedBoard } from '../plugged-board.ts'

const A: UsbBoardIdentity = { vendor: '2e8a', product: '0005', serialNumber: 'E66058388351', productName: 'Board in FS mode' }
const B: UsbBoardIdentity = { vendor: '2341', product: '0043', serialNumber: '75735303331' }
const C: UsbBoardIdentity = { vendor: '0483', product: '374b', serialNumber: '0669FF303435', manufacturer: 'ST' }
const keyValue = memoryKeyValue()
const boards: PluggedBoard[] = []

const registryOf = (host: Host = liveHost({ keyValue })): Registry => new Registry(host, v.parse(peripheralsSection.schema, {}))
/** Scans until `count` devices are found: on an emulated machine, one scan of two seconds may find none yet. */
async function allFound(registry: Registry, signal: AbortSignal, count = boards.length): ReturnType<Registry['discover']> {
  for (;;) {
    const found = await registry.discover(signal)
    if (found.length >= count) return found
    signal.throwIfAborted()
  }
}
const named = (registry: Registry, alias: string) => registry.all().find((device) => device.alias === alias)
const isConnected = (registry: Registry, alias: string, wanted: boolean) =>
  eventually(`${alias} ${wanted ? 'connected' : 'disconnected'}`, async () =>
    named(registry, alias)?.connected === wanted ? true : undefined,
  )

export default vmCase({
  modules: usbBoardModules(4),
  udev: true,
  tests: {
    'finds three boards by vendor and product and names them by family': async ({ after, signal }) => {
      for (const identity of [B, C, A]) {
        const board = await boardWithFirmware(identity)
        await board.usb.plug()
        boards.push(board)
      }
      const registry = registryOf()
      after(() => registry.close())
      const found = await allFound(registry, signal)
      const shown = found.map(
        ({ alias, board, usb, path }) => `${alias} ${board?.name} ${usb?.vendor}:${usb?.product} ${usb?.serialNumber} ${path}`,
      )
      assert.deepEqual(shown, [
        `board_a0 board_a 2e8a:0005 ${A.serialNumber} /dev/ttyACM2`,
        `board_b0 board_b 2341:0043 ${B.serialNumber} /dev/ttyACM0`,
        `board_c0 board_c1 0483:374b ${C.serialNumber} /dev/ttyACM1`,
      ])
    },

    'writes and reads pins through the port': async ({ after, signal }) => {
      const registry = registryOf()
      after(() => registry.close())
      await allFound(registry, signal)
      const line = registry.line('board_b0')
      await line.write(13, 1, signal)
      assert.equal(boards[0]?.firmware.pins.get(13), 1)
      assert.equal(await line.read(13, signal), 1)
      assert.deepEqual((await line.capabilities(signal)).gpio, [2, 3, 4, 5, 12, 13])
    },

    'copes with noise on the line and half a reply': async ({ after, signal }) => {
      const registry = registryOf()
      after(() => registry.close())
      await allFound(registry, signal)
      boards[1]?.firmware.next('noise', 'half')
      const line = registry.line('board_c0')
      assert.equal(await line.read(2, signal), 0)
      assert.equal(await line.read(2, signal), 0)
    },

    'keeps the alias of a board that is unplugged and comes back': async ({ after, signal }) => {
      const [board] = boards
      assert.ok(board)
      const registry = registryOf()
      after(() => registry.close())
      registry.start()
      await isConnected(registry, 'board_b0', true)
      const line = registry.line('board_b0')
      assert.equal(await line.read(13, signal), 1)
      await board.usb.unplug()
      await isConnected(registry, 'board_b0', false)
      await assert.rejects(line.read(13, signal), { code: 'unavailable' })
      await board.usb.plug()
      await isConnected(registry, 'board_b0', true)
      assert.equal(await line.read(13, signal), 1)
    },

    'ends a call with an error when the board is unplugged during the reply': async ({ after, signal }) => {
      const [, board] = boards
      assert.ok(board)
      const registry = registryOf()
      after(() => registry.close())
      await allFound(registry, signal)
      const line = registry.line('board_c0')
      await line.read(2, signal)
      board.firmware.next('half', 'half', 'half', 'half')
      const read = assert.rejects(line.read(2, signal), { name: 'AppError' })
      await board.usb.unplug()
      await read
      board.firmware.next()
      await board.usb.plug()
    },

    'keeps the aliases after a restart, in any order of plugging': async ({ after, signal }) => {
      for (const { usb } of boards) await usb.unplug()
      const twin = await createUsbBoard({ ...B, serialNumber: '99999999999' })
      await twin.plug()
      for (const { usb } of boards.toReversed()) await usb.plug()
      const registry = registryOf()
      after(() => registry.close())
      const found = await allFound(registry, signal, boards.length + 1)
      assert.deepEqual(
        found.map(({ alias, usb }) => `${alias} ${usb?.serialNumber}`),
        [`board_a0 ${A.serialNumber}`, `board_b0 ${B.serialNumber}`, 'board_b1 99999999999', `board_c0 ${C.serialNumber}`],
      )
      await twin.unplug()
    },
  },
})
