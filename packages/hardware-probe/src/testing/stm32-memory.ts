/**
 * Simulates the memory of an STM32F4 as its debug port sees it: QEMU emulates the core and its memory, and this file adds the registers
 * for debugging and identity that QEMU does not have.
 */
import { parseEndpoint } from '../config.ts'
import { GdbLink } from '../gdb/gdb-link.ts'
import { openSocket } from '../server-connection.ts'
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

/** The addresses of the simulated registers. */
const FLASH_SIZE = 0x1fff7a20
const DEBUG_HALTING = 0xe000edf0
const REGISTER_SELECTOR = 0xe000edf4
const REGISTER_DATA = 0xe000edf8
const MONITOR_CONTROL = 0xe000edfc
const IDCODE = 0xe0042000
const DEBUG_CONTROL = 0xe0042004

const WORD = /^(?:[0-9a-f]{8}|E..)$/
const DONE = /^(?:OK|E..|)$/
/** The number of the program status register in the register selector, and QEMU's number for it. */
const PROGRAM_STATUS = 16
const PROGRAM_STATUS_IN_GDB = 25

/** Connects to the emulated core. Each access halts the core for a moment, which the debug port does not show. */
export async function openStm32Memory(gdb: string, model: ChipModel): Promise<Stm32Memory> {
  const { signal } = new AbortController()
  const link = new GdbLink(await openSocket(parseEndpoint(gdb), signal), 'QEMU', signal)
  await link.request('qSupported', /^PacketSize/)
  await link.requestStop('?')
  // QEMU gives access to single registers only after a client has read the target description.
  await link.request('qXfer:features:read:target.xml:0,800', /^[lm]/)
  await link.run()
  return new Stm32Memory(link, model)
}

export class Stm32Memory implements TargetMemory {
  readonly #link: GdbLink
  readonly #registers: ReadonlyMap<number, Register>
  #isHalted = false
  /** The values of the registers that only store what was written. */
  readonly #values = new Map<number, number>()

  constructor(link: GdbLink, { idCode, flashKib }: ChipModel) {
    this.#link = link
    this.#registers = new Map<number, Register>([
      [IDCODE, { load: () => idCode }],
      [FLASH_SIZE, { load: () => (flashKib << 16) >>> 0 }],
      [DEBUG_HALTING, { load: () => this.#haltingStatus(), store: (value) => this.#setHalting(value) }],
      [REGISTER_SELECTOR, { store: (value) => this.#transferRegister(value) }],
      [REGISTER_DATA, this.#storage(REGISTER_DATA)],
      [MONITOR_CONTROL, this.#storage(MONITOR_CONTROL)],
      [DEBUG_CONTROL, this.#storage(DEBUG_CONTROL)],
    ])
  }

  async load(address: number): Promise<number> {
    const register = this.#registers.get(address)
    if (register) return register.load?.() ?? 0
    if (isDebugUnit(address)) return 0
    return this.#whileHalted(async () => wordOf(await this.#link.request(`m${address.toString(16)},4`, WORD)))
  }

  async store(address: number, value: number): Promise<void> {
    const register = this.#registers.get(address)
    if (register) await register.store?.(value)
    else if (!isDebugUnit(address)) await this.#whileHalted(() => this.#link.request(`M${address.toString(16)},4:${wordText(value)}`, DONE))
  }

  close(): void {
    this.#link.close()
  }

  #storage(address: number): Register {
    return { load: () => this.#values.get(address) ?? 0, store: (value) => void this.#values.set(address, value) }
  }

  /** The status says that register transfers are always complete. */
  #haltingStatus(): number {
    return (0x10000 | (this.#isHalted ? 0x20003 : 0x1)) >>> 0
  }

  async #setHalting(value: number): Promise<void> {
    if (value >>> 16 !== 0xa05f) return
    if (value & 2) await this.#halt()
    else await this.#resume()
  }

  async #transferRegister(selector: number): Promise<void> {
    const register = selector & 0x7f
    const number = (register === PROGRAM_STATUS ? PROGRAM_STATUS_IN_GDB : register).toString(16)
    if (register > PROGRAM_STATUS) this.#values.set(REGISTER_DATA, 0)
    else if (selector & 0x10000) await this.#link.request(`P${number}=${wordText(this.#values.get(REGISTER_DATA) ?? 0)}`, DONE)
    else this.#values.set(REGISTER_DATA, wordOf(await this.#link.request(`p${number}`, WORD)))
  }

  async #halt(): Promise<void> {
    if (!this.#isHalted) await this.#link.requestStop('interrupt')
    this.#isHalted = true
  }

  async #resume(): Promise<void> {
    if (this.#isHalted) await this.#link.run()
    this.#isHalted = false
  }

  async #whileHalted<Result>(work: () => Promise<Result>): Promise<Result> {
    const wasHalted = this.#isHalted
    await this.#halt()
    try {
      return await work()
    } finally {
      if (!wasHalted) await this.#resume()
    }
  }
}

/** The units for watchpoints and breakpoints read as zero: the simulated chip has neither. */
const isDebugUnit = (address: number): boolean => address >= 0xe0001000 && address < 0xe0003000

const wordOf = (reply: string): number => {
  if (reply.startsWith('E')) throw new Error(reply)
  return Buffer.from(reply, 'hex').readUInt32LE()
}

const wordText = (value: number): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes.toString('hex')
}
