/** Makes every function pay: at its entry, and each time round a loop, for the instructions that follow. */
import { ByteReader } from './byte-reader.ts'
import { encodeI64, encodeU32, joined } from './encode.ts'
import { ModuleError } from './module-error.ts'
import { OPCODE, skipImmediates } from './skip-immediates.ts'

/** A place where a price is due: for all instructions up to the next such place, whichever of them will run. */
interface Toll {
  readonly at: number
  price: number
}

/** Of all functions; and how deep blocks may lie in one. Far more than compilers make, and no more than a worker can hold. */
const TOLLS_MAX = 100_000
const NESTING_MAX = 10_000

/** `global` is where the fuel is. Neither values on the stack nor labels are disturbed: a charge leaves everything as it was. */
const charge = (global: number, price: number): number[] => {
  const index = encodeU32(global)
  return [
    ...[0x23, ...index], // global.get
    ...[0x42, ...encodeI64(price)], // i64.const
    0x7d, // i64.sub
    ...[0x24, ...index], // global.set
    ...[0x23, ...index], // global.get
    ...[0x42, 0], // i64.const
    0x53, // i64.lt_s
    ...[0x04, 0x40, 0x00, 0x0b], // if unreachable end
  ]
}

/** The code section's content anew. */
export function meterCode(section: ByteReader, global: number): Uint8Array {
  const count = section.u32()
  const parts: (Uint8Array | number[])[] = [encodeU32(count)]
  let tolls = 0
  for (let index = 0; index < count; index++) {
    const { body, tollCount } = meterBody(section.take(section.u32()), global)
    tolls += tollCount
    if (tolls > TOLLS_MAX) throw tooMany()
    parts.push(encodeU32(body.length), body)
  }
  return joined(parts)
}

const tooMany = (): ModuleError => new ModuleError(`has more than ${TOLLS_MAX} functions and loops`)

function meterBody(whole: Uint8Array, global: number): { readonly body: Uint8Array; readonly tollCount: number } {
  const code = new ByteReader(whole)
  for (let groups = code.u32(); groups > 0; groups--) {
    code.u32()
    code.byte()
  }
  const parts: (Uint8Array | number[])[] = []
  let copied = 0
  const tolls = tollsOf(code, global)
  for (const { at, price } of tolls) {
    parts.push(whole.subarray(copied, at), charge(global, price))
    copied = at
  }
  parts.push(whole.subarray(copied))
  return { body: joined(parts), tollCount: tolls.length }
}

/** The tolls of one function in order; `code` stands at its first instruction. */
function tollsOf(code: ByteReader, global: number): readonly Toll[] {
  const entry: Toll = { at: code.at, price: 1 }
  const tolls = [entry]
  // what each block that is open pays into
  const open: Toll[] = [entry]
  for (let payee: Toll | undefined = entry; payee; payee = open.at(-1)) {
    const opcode = code.byte()
    const { at } = code
    // The engine sees the module with the counter in it, and would let the plugin fill its own.
    const isGlobal = opcode === OPCODE.getGlobal || opcode === OPCODE.setGlobal
    if (isGlobal && code.u32() >= global) throw new ModuleError('uses a global it does not have')
    code.at = at
    skipImmediates(opcode, code)
    payee.price += 1
    if (open.length > NESTING_MAX) throw new ModuleError(`has more than ${NESTING_MAX} blocks within each other`)
    if (opcode === OPCODE.loop) {
      const toll = { at: code.at, price: 1 }
      if (tolls.push(toll) > TOLLS_MAX) throw tooMany()
      open.push(toll)
    } else if (opcode === OPCODE.block || opcode === OPCODE.if) {
      open.push(payee)
    } else if (opcode === OPCODE.end) {
      open.pop()
    }
  }
  if (!code.isAtEnd) throw new ModuleError('has code behind the end of a function')
  return tolls
}
