/** Inserts code that charges fuel at the entry of every function and at each iteration of a loop, for the instructions that follow. */
import { ByteReader } from './byte-reader.ts'
import { encodeI64, encodeU32, joined } from './encode.ts'
import { OPCODE, skipImmediates } from './instructions.ts'
import { ModuleError } from './module-error.ts'

/** A place that charges for all instructions up to the next such place, whether or not all of them run. */
interface ChargePoint {
  readonly at: number
  cost: number
}

/** The limit of all functions together. Compilers stay far below it, and a worker can hold this many. */
const CHARGE_POINTS_MAX = 100_000
/** How deeply the blocks of a function may be nested. */
const NESTING_MAX = 10_000

/** Returns the content of the code section with charges added. `fuelGlobal` is the index of the global that holds the fuel. */
export function meterCode(section: ByteReader, fuelGlobal: number): Uint8Array {
  const count = section.u32()
  const parts: (Uint8Array | number[])[] = [encodeU32(count)]
  let charges = 0
  for (let index = 0; index < count; index++) {
    const body = section.take(section.u32())
    const points = chargePoints(body, fuelGlobal)
    charges += points.length
    if (charges > CHARGE_POINTS_MAX) throw tooManyChargePoints()
    const metered = insertCharges(body, points, fuelGlobal)
    parts.push(encodeU32(metered.length), metered)
  }
  return joined(parts)
}

const tooManyChargePoints = (): ModuleError => new ModuleError(`has more than ${CHARGE_POINTS_MAX} functions and loops`)

/** Returns the charge points of one function body in order. */
function chargePoints(body: Uint8Array, fuelGlobal: number): readonly ChargePoint[] {
  const code = new ByteReader(body)
  code.locals()
  const entry: ChargePoint = { at: code.at, cost: 1 }
  const points = [entry]
  /** For each open block, the point that pays for its instructions. */
  const open: ChargePoint[] = [entry]
  for (let payer: ChargePoint | undefined = entry; payer; payer = open.at(-1)) {
    const opcode = code.byte()
    const { at } = code
    // After the rewrite the fuel is a valid global, so the engine would not stop the plugin from refilling it.
    const usesGlobal = opcode === OPCODE.getGlobal || opcode === OPCODE.setGlobal
    if (usesGlobal && code.u32() >= fuelGlobal) throw new ModuleError('uses a global it does not have')
    code.at = at
    skipImmediates(opcode, code)
    payer.cost += 1
    if (open.length > NESTING_MAX) throw new ModuleError(`has more than ${NESTING_MAX} nested blocks`)
    if (opcode === OPCODE.loop) {
      const point = { at: code.at, cost: 1 }
      if (points.push(point) > CHARGE_POINTS_MAX) throw tooManyChargePoints()
      open.push(point)
    } else if (opcode === OPCODE.block || opcode === OPCODE.if) {
      open.push(payer)
    } else if (opcode === OPCODE.end) {
      open.pop()
    }
  }
  if (!code.isAtEnd) throw new ModuleError('has code behind the end of a function')
  return points
}

function insertCharges(body: Uint8Array, points: readonly ChargePoint[], fuelGlobal: number): Uint8Array {
  const parts: (Uint8Array | number[])[] = []
  let copied = 0
  for (const { at, cost } of points) {
    parts.push(body.subarray(copied, at), chargeCode(fuelGlobal, cost))
    copied = at
  }
  parts.push(body.subarray(copied))
  return joined(parts)
}

/** Subtracts `cost` from the fuel and traps when it is below 0. Leaves the stack and the labels of blocks unchanged. */
const chargeCode = (fuelGlobal: number, cost: number): number[] => {
  const index = encodeU32(fuelGlobal)
  return [
    ...[0x23, ...index], // global.get
    ...[0x42, ...encodeI64(cost)], // i64.const
    0x7d, // i64.sub
    ...[0x24, ...index], // global.set
    ...[0x23, ...index], // global.get
    ...[0x42, 0], // i64.const
    0x53, // i64.lt_s
    ...[0x04, 0x40, 0x00, 0x0b], // if unreachable end
  ]
}
