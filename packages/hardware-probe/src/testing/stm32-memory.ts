/** The memory of an STM32F4 before its debug port: what QEMU emulates, under the registers of debugging and identity it lacks. */

import { parseEndpoint } from '../config.ts'
import { createGdbLink } from '../gdb/link.ts'
import { openSocket } from '../open-socket.ts'
import type { TargetMemory } from './debug-port.ts'

export interface ChipModel {
  readonly idCode: number
  readonly boundaryIdentity: number
  readonly flashKib: number
}

export const CHIP_MODELS = {
  f401re: { idCode: 0x10016433, boundaryIdentity: 0x06433041, flashKib: 512 },
  f411re: { idCode: 0x10006431, boundaryIdentity: 0x06431041, flashKib: 512 },
} as const satisfies Record<string, ChipModel>

interface Register {
  readonly load?: () => number
  readonly store?: (value: number) => Promise<void> | void
}

const WORD = /^(?:[0-9a-f]{8}|E..)$/
const PROGRAM_STATUS = 16
/** The number QEMU gives it. */
const PROGRAM_STATUS_IN_GDB = 25

/** Halts the emulated core for the moment of each access, as nobody on the other side can see. */
export async function openStm32Memory(gdb: string, { idCode, flashKib }: ChipModel): Promise<TargetMemory & { close(): void }> {
  const link = createGdbLink(await openSocket(parseEndpoint(gdb), new AbortController().signal), 'QEMU', new AbortController().signal)
  await link.ask('qSupported', /^PacketSize/)
  await link.askStop('?')
  // single registers are there only for who has read what there is
  await link.ask('qXfer:features:read:target.xml:0,800', /^[lm]/)
  await link.run()
  let [isHalted, transfer, monitorControl, debugControl] = [false, 0, 0, 0]
  const halt = async () => {
    if (!isHalted) await link.askStop('interrupt')
    isHalted = true
  }
  const resume = async () => {
    if (isHalted) await link.run()
    isHalted = false
  }
  const paused = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const wasHalted = isHalted
    await halt()
    try {
      return await work()
    } finally {
      if (!wasHalted) await resume()
    }
  }
  const wordOf = (reply: string): number => {
    if (reply.startsWith('E')) throw new Error(reply)
    return Buffer.from(reply, 'hex').readUInt32LE()
  }
  const wordText = (value: number): string => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    return bytes.toString('hex')
  }
  const transferRegister = async (selector: number): Promise<void> => {
    const register = selector & 0x7f
    const name = (register === PROGRAM_STATUS ? PROGRAM_STATUS_IN_GDB : register).toString(16)
    if (register > PROGRAM_STATUS) transfer = 0
    else if (selector & 0x10000) await link.ask(`P${name}=${wordText(transfer)}`, /^(?:OK|E..|)$/)
    else transfer = wordOf(await link.ask(`p${name}`, WORD))
  }

  const registers: Readonly<Record<number, Register>> = {
    3758366720: { load: () => idCode },
    3758366724: {
      load: () => debugControl,
      store: (value) => {
        debugControl = value
      },
    },
    536836640: { load: () => (flashKib << 16) >>> 0 },
    // halting control and status: a register is always ready
    3758157296: {
      load: () => (0x10000 | (isHalted ? 0x20003 : 0x1)) >>> 0,
      store: (value) => (value >>> 16 !== 0xa05f ? undefined : value & 2 ? halt() : resume()),
    },
    3758157300: { store: transferRegister },
    3758157304: {
      load: () => transfer,
      store: (value) => {
        transfer = value
      },
    },
    3758157308: {
      load: () => monitorControl,
      store: (value) => {
        monitorControl = value
      },
    },
  }
  /** Of watchpoints and breakpoints there are none. */
  const isDebugUnit = (address: number): boolean => address >= 0xe0001000 && address < 0xe0003000

  return {
    async load(address) {
      const register = registers[address]
      if (register) return register.load?.() ?? 0
      if (isDebugUnit(address)) return 0
      return paused(async () => wordOf(await link.ask(`m${address.toString(16)},4`, WORD)))
    },
    async store(address, value) {
      const register = registers[address]
      if (register) await register.store?.(value)
      else if (!isDebugUnit(address)) await paused(() => link.ask(`M${address.toString(16)},4:${wordText(value)}`, /^(?:OK|E..)$/))
    },
    close: () => link.close(),
  }
}
