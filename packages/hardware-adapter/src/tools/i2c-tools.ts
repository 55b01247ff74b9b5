/** The tools `i2c_scan`, `i2c_read` and `i2c_write`. */
import { defineTool, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { hexByte, hexList } from '../hex.ts'
import { scanI2c } from './scan-i2c.ts'
import { addressKey, auditedBytes, byte, deviceKey, requirePart, type ToolKit, usePart } from './tool-kit.ts'

const BYTES_MAX = 256

export const i2cScan = (kit: ToolKit): Tool =>
  defineTool({
    name: 'i2c_scan',
    description:
      'Finds the devices on an I2C bus by reading one byte at each address from 0x08 to 0x77. Nothing is written, but a read can change a part that counts or clears on reading.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({ device: deviceKey }),
    available: () => kit.adapters.present().length > 0,
    async run({ device }, context) {
      const { result, notes } = await usePart(kit, 'i2c', { device, tool: 'i2c_scan', context }, (i2c) => scanI2c(i2c, context.signal))
      context.report?.({ data: JSON.stringify(result.map(({ address }) => address)) })
      if (result.length === 0) return `I2C scan found no devices; check power, wiring and pull-up resistors${notes}`
      const names = result.map(({ address, isHeld }) => (isHeld ? `${hexByte(address)} (in use by a kernel driver)` : hexByte(address)))
      return `I2C scan found ${result.length} device(s): ${names.join(', ')}${notes}`
    },
  })

export const i2cRead = (kit: ToolKit): Tool =>
  defineTool({
    name: 'i2c_read',
    description:
      'Reads bytes from a device on an I2C bus. With a register, its number is written first and the read follows after a repeated start.',
    // A part without registers, such as a port expander or a switch, takes the written byte as a command.
    risk: ({ register }) => (register === undefined ? 'read' : 'execute'),
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      device: deviceKey,
      addr: addressKey,
      register: v.optional(v.pipe(byte, v.description('Register to write before the read; not for parts without registers'))),
      len: v.optional(v.pipe(whole(1, BYTES_MAX), v.description('Number of bytes; some buses read at most 32 after a register')), 1),
    }),
    precheck: requirePart(kit, 'i2c'),
    available: () => kit.adapters.present().length > 0,
    async run({ device, addr, register, len }, context) {
      const write = register === undefined ? {} : { write: { address: hexByte(addr), register: hexByte(register) } }
      const { result, notes } = await usePart(kit, 'i2c', { device, tool: 'i2c_read', context, ...write }, (i2c) =>
        i2c.read(addr, len, register),
      )
      context.report?.({ data: JSON.stringify(Array.from(result)) })
      return `I2C read from addr ${hexByte(addr)}: ${hexList(result)}${notes}`
    },
  })

export const i2cWrite = (kit: ToolKit): Tool =>
  defineTool({
    name: 'i2c_write',
    description: 'Writes bytes to a device on an I2C bus, in one transaction. The first byte is often a register number.',
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    input: v.object({
      device: deviceKey,
      addr: addressKey,
      bytes: v.pipe(v.array(byte), v.minLength(1), v.maxLength(BYTES_MAX), v.description('The bytes as numbers from 0 to 255')),
    }),
    precheck: requirePart(kit, 'i2c'),
    available: () => kit.adapters.present().length > 0,
    async run({ device, addr, bytes }, context) {
      const write = { address: hexByte(addr), ...auditedBytes(bytes) }
      const { notes } = await usePart(kit, 'i2c', { device, tool: 'i2c_write', context, write }, (i2c) =>
        i2c.write(addr, Uint8Array.from(bytes)),
      )
      return `I2C write to addr ${hexByte(addr)}: ${bytes.length} byte(s) written${notes}`
    },
  })
