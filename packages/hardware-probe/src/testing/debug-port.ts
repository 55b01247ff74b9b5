/** Simulates the JTAG debug port of an Arm core with one access port for memory (ADIv5). */
import { type AccessRegister, INSTRUCTION } from './jtag-taps.ts'

export interface TargetMemory {
  /** Reads one word; `address` is a multiple of 4. Rejects when there is no memory. */
  load(address: number): Promise<number>
  store(address: number, value: number): Promise<void>
}

const OK = 2n
const DP = { control: 0x4, select: 0x8 } as const
const AP = { control: 0x00, address: 0x04, data: 0x0c, banked: 0x10, config: 0xf4, base: 0xf8, identity: 0xfc } as const
const AHB_ACCESS_PORT = 0x24770011
const ROM_TABLE = 0xe00ff003
const STICKY_ERROR = 0x20
const POWER_REQUESTS = 0x50000000
/** The supported bits of the control register: size, single increments and protection. */
const CONTROL_BITS = 0x7f000017
const IS_ENABLED = 0x40
const INCREMENTS = 0x10

export function createDebugPort(memory: TargetMemory): AccessRegister {
  let [power, select, result] = [0, 0, 0]
  let hasError = false
  let [control, address] = [0x23000042, 0]

  const step = (): number => {
    const at = address
    // The address is incremented within a block of 1 KiB.
    if (control & INCREMENTS) address = ((at & ~0x3ff) | ((at + (1 << (control & 7))) & 0x3ff)) >>> 0
    return (at & ~3) >>> 0
  }
  const bankedAddress = (register: number): number => ((address & ~0xf) | (register & 0xc)) >>> 0
  const isBanked = (register: number): boolean => register >= AP.banked && register < AP.banked + 0x10

  const readPort = async (register: number): Promise<number> => {
    if (register === AP.data) return memory.load(step())
    if (isBanked(register)) return memory.load(bankedAddress(register))
    return { [AP.control]: control, [AP.address]: address, [AP.base]: ROM_TABLE, [AP.identity]: AHB_ACCESS_PORT }[register] ?? 0
  }
  const writePort = async (register: number, value: number): Promise<void> => {
    if (register === AP.control) control = ((value & CONTROL_BITS) | IS_ENABLED) >>> 0
    else if (register === AP.address) address = value
    else if (register === AP.data) await memory.store(step(), value)
    else if (isBanked(register)) await memory.store(bankedAddress(register), value)
  }

  const debugAccess = (isRead: boolean, register: number, value: number): void => {
    if (isRead) {
      const status = (power | ((power & POWER_REQUESTS) << 1) | (hasError ? STICKY_ERROR : 0)) >>> 0
      result = register === DP.control ? status : register === DP.select ? select : 0
    } else if (register === DP.control) {
      power = value & POWER_REQUESTS
      if (value & STICKY_ERROR) hasError = false
    } else if (register === DP.select) select = value
  }
  const portAccess = async (isRead: boolean, low: number, value: number): Promise<void> => {
    result = 0
    if (hasError || select >>> 24 !== 0) return
    const register = (select & 0xf0) | low
    try {
      if (isRead) result = await readPort(register)
      else await writePort(register, value)
    } catch {
      hasError = true
    }
  }

  return {
    // The next access shifts out the result of a read.
    capture: () => (BigInt(result) << 3n) | OK,
    async update(instruction, bits) {
      const [isRead, register, value] = [(bits & 1n) === 1n, Number((bits >> 1n) & 3n) << 2, Number(bits >> 3n)]
      if (instruction === INSTRUCTION.debug) debugAccess(isRead, register, value)
      else if (instruction === INSTRUCTION.access) await portAccess(isRead, register, value)
      else hasError = false
    },
  }
}
