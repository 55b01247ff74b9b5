/** Simulates the JTAG debug port of an Arm core with one access port for memory (ADIv5). */
import { type AccessRegister, INSTRUCTION } from './jtag-taps.ts'

export interface TargetMemory {
  /** Reads one word; `address` is a multiple of 4. Rejects when the address has no memory. */
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

export class DebugPort implements AccessRegister {
  readonly #memory: TargetMemory
  #power = 0
  /** The selected access port and its register bank. */
  #select = 0
  /** The value that the next access shifts out. */
  #result = 0
  #hasError = false
  /** The control and address registers of the access port. */
  #control = 0x23000042
  #address = 0

  constructor(memory: TargetMemory) {
    this.#memory = memory
  }

  capture(): bigint {
    return (BigInt(this.#result) << 3n) | OK
  }

  async update(instruction: number, bits: bigint): Promise<void> {
    const [isRead, register, value] = [(bits & 1n) === 1n, Number((bits >> 1n) & 3n) << 2, Number(bits >> 3n)]
    if (instruction === INSTRUCTION.debug) this.#accessDebugPort(isRead, register, value)
    else if (instruction === INSTRUCTION.access) await this.#accessPort(isRead, register, value)
    else this.#hasError = false
  }

  #accessDebugPort(isRead: boolean, register: number, value: number): void {
    if (isRead) this.#result = register === DP.control ? this.#status() : register === DP.select ? this.#select : 0
    else if (register === DP.control) {
      this.#power = value & POWER_REQUESTS
      if (value & STICKY_ERROR) this.#hasError = false
    } else if (register === DP.select) this.#select = value
  }

  #status(): number {
    return (this.#power | ((this.#power & POWER_REQUESTS) << 1) | (this.#hasError ? STICKY_ERROR : 0)) >>> 0
  }

  async #accessPort(isRead: boolean, low: number, value: number): Promise<void> {
    this.#result = 0
    if (this.#hasError || this.#select >>> 24 !== 0) return
    const register = (this.#select & 0xf0) | low
    try {
      if (isRead) this.#result = await this.#readPort(register)
      else await this.#writePort(register, value)
    } catch {
      this.#hasError = true
    }
  }

  async #readPort(register: number): Promise<number> {
    if (register === AP.data) return this.#memory.load(this.#nextAddress())
    if (isBanked(register)) return this.#memory.load(this.#bankedAddress(register))
    if (register === AP.control) return this.#control
    if (register === AP.address) return this.#address
    if (register === AP.base) return ROM_TABLE
    return register === AP.identity ? AHB_ACCESS_PORT : 0
  }

  async #writePort(register: number, value: number): Promise<void> {
    if (register === AP.control) this.#control = ((value & CONTROL_BITS) | IS_ENABLED) >>> 0
    else if (register === AP.address) this.#address = value
    else if (register === AP.data) await this.#memory.store(this.#nextAddress(), value)
    else if (isBanked(register)) await this.#memory.store(this.#bankedAddress(register), value)
  }

  /** Returns the address of this access. Increments it within a block of 1 KiB when the control register asks for that. */
  #nextAddress(): number {
    const at = this.#address
    if (this.#control & INCREMENTS) this.#address = ((at & ~0x3ff) | ((at + (1 << (this.#control & 7))) & 0x3ff)) >>> 0
    return (at & ~3) >>> 0
  }

  #bankedAddress(register: number): number {
    return ((this.#address & ~0xf) | (register & 0xc)) >>> 0
  }
}

const isBanked = (register: number): boolean => register >= AP.banked && register < AP.banked + 0x10
