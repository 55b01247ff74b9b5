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

/** The instructions of the debug port, which have four bits. Those of the boundary scan have five. */
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

export interface Taps {
  /** Processes a rising edge of TCK. */
  clock(tms: 0 | 1, tdi: 0 | 1): Promise<void>
  /** Returns the bit at TDO. */
  out(): 0 | 1
  reset(): void
}

export function createTaps(boundaryIdentity: number, access: AccessRegister): Taps {
  let state = 'reset'
  let [instruction, boundary]: [number, number] = [INSTRUCTION.identity, BOUNDARY_IDENTITY]
  let [register, bits] = [0n, 1n]

  const isAccess = (): boolean =>
    instruction !== INSTRUCTION.identity && instruction >= INSTRUCTION.abort && instruction <= INSTRUCTION.access
  const debugBits = (): bigint => (instruction === INSTRUCTION.identity ? IDENTITY_BITS : isAccess() ? ACCESS_BITS : 1n)

  const captureData = (): void => {
    const own = instruction === INSTRUCTION.identity ? DEBUG_IDENTITY : isAccess() ? access.capture() : 0n
    const isIdentity = boundary === BOUNDARY_IDENTITY
    register = own | ((isIdentity ? BigInt(boundaryIdentity) : 0n) << debugBits())
    bits = debugBits() + (isIdentity ? IDENTITY_BITS : 1n)
  }
  const reset = (): void => {
    state = 'reset'
    ;[instruction, boundary] = [INSTRUCTION.identity, BOUNDARY_IDENTITY]
  }
  const enter: Readonly<Record<string, () => void | Promise<void>>> = {
    reset,
    captureIr() {
      register = 1n | (1n << DEBUG_IR_BITS)
      bits = DEBUG_IR_BITS + BOUNDARY_IR_BITS
    },
    updateIr() {
      instruction = Number(register & 0xfn)
      boundary = Number(register >> DEBUG_IR_BITS)
    },
    captureDr: captureData,
    updateDr: () => (isAccess() ? access.update(instruction, register & ((1n << ACCESS_BITS) - 1n)) : undefined),
  }

  return {
    async clock(tms, tdi) {
      if (state === 'shiftDr' || state === 'shiftIr') register = (register >> 1n) | (BigInt(tdi) << (bits - 1n))
      state = NEXT[state]?.[tms] ?? 'reset'
      await enter[state]?.()
    },
    out: () => (register & 1n ? 1 : 0),
    reset,
  }
}
