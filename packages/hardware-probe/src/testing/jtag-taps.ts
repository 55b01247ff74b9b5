/** Simulates the two JTAG TAPs of an STM32F4 bit by bit: the debug port and the boundary scan after it (IEEE 1149.1). */

/** The next states for TMS 0 and TMS 1, by state. */
const NEXT: Readonly<Record<string, readonly [string, string]>> = {
  reset: ['idle', 'reset'],
  idle: ['idle', 'selectDr'],
  selectDr: ['captureDr', 'selectIr'],
  captureDr: ['shiftDr', 'exit1Dr'],
  shiftDr: ['shiftDr', 'exit1Dr'],
  exit1Dr: ['pauseDr', 'updateDr'],
  pauseDr: ['pauseDr', 'exit2Dr'],
  exit2Dr: ['shiftDr', 'updateDr'],
  updateDr: ['idle', 'selectDr'],
  selectIr: ['captureIr', 'reset'],
  captureIr: ['shiftIr', 'exit1Ir'],
  shiftIr: ['shiftIr', 'exit1Ir'],
  exit1Ir: ['pauseIr', 'updateIr'],
  pauseIr: ['pauseIr', 'exit2Ir'],
  exit2Ir: ['shiftIr', 'updateIr'],
  updateIr: ['idle', 'selectDr'],
}

/** The four-bit instructions of the debug port. The instructions of the boundary scan have five bits. */
export const INSTRUCTION = { abort: 0x8, debug: 0xa, access: 0xb, identity: 0xe } as const
const BOUNDARY_IDENTITY = 1
const [DEBUG_IR_BITS, BOUNDARY_IR_BITS] = [4n, 5n]
const IDENTITY_BITS = 32n
const ACCESS_BITS = 35n
const DEBUG_IDENTITY = 0x4ba00477n

/** The access registers of the debug port. */
export interface AccessRegister {
  /** Returns the 35 bits to shift out. */
  capture(): bigint
  /** Takes the 35 bits that were shifted in. */
  update(instruction: number, value: bigint): Promise<void>
}

export class Taps {
  readonly #boundaryIdentity: number
  readonly #access: AccessRegister
  #state = 'reset'
  /** The current instructions of the debug port and of the boundary scan. */
  #instruction: number = INSTRUCTION.identity
  #boundary = BOUNDARY_IDENTITY
  /** The shift register through both TAPs, and its number of bits. */
  #register = 0n
  #bits = 1n

  constructor(boundaryIdentity: number, access: AccessRegister) {
    this.#boundaryIdentity = boundaryIdentity
    this.#access = access
  }

  /** Processes a rising edge of TCK. */
  async clock(tms: 0 | 1, tdi: 0 | 1): Promise<void> {
    if (this.#state === 'shiftDr' || this.#state === 'shiftIr') this.#register = (this.#register >> 1n) | (BigInt(tdi) << (this.#bits - 1n))
    this.#state = NEXT[this.#state]?.[tms] ?? 'reset'
    if (this.#state === 'reset') this.reset()
    else if (this.#state === 'captureIr') this.#captureInstruction()
    else if (this.#state === 'updateIr') this.#updateInstruction()
    else if (this.#state === 'captureDr') this.#captureData()
    else if (this.#state === 'updateDr' && this.#isAccess())
      await this.#access.update(this.#instruction, this.#register & ((1n << ACCESS_BITS) - 1n))
  }

  /** Returns the bit at TDO. */
  out(): 0 | 1 {
    return this.#register & 1n ? 1 : 0
  }

  reset(): void {
    this.#state = 'reset'
    this.#instruction = INSTRUCTION.identity
    this.#boundary = BOUNDARY_IDENTITY
  }

  #captureInstruction(): void {
    this.#register = 1n | (1n << DEBUG_IR_BITS)
    this.#bits = DEBUG_IR_BITS + BOUNDARY_IR_BITS
  }

  #updateInstruction(): void {
    this.#instruction = Number(this.#register & 0xfn)
    this.#boundary = Number(this.#register >> DEBUG_IR_BITS)
  }

  #captureData(): void {
    const isIdentity = this.#instruction === INSTRUCTION.identity
    const debugData = isIdentity ? DEBUG_IDENTITY : this.#isAccess() ? this.#access.capture() : 0n
    const debugBits = isIdentity ? IDENTITY_BITS : this.#isAccess() ? ACCESS_BITS : 1n
    const hasBoundaryIdentity = this.#boundary === BOUNDARY_IDENTITY
    this.#register = debugData | ((hasBoundaryIdentity ? BigInt(this.#boundaryIdentity) : 0n) << debugBits)
    this.#bits = debugBits + (hasBoundaryIdentity ? IDENTITY_BITS : 1n)
  }

  #isAccess(): boolean {
    const { identity, abort, access } = INSTRUCTION
    return this.#instruction !== identity && this.#instruction >= abort && this.#instruction <= access
  }
}
