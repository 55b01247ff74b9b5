/** Makes every function pay: at its entry, and each time round a loop, for the instructions that follow. */
import type { ByteReader } from './byte-reader.ts'
import { ByteReader as Reader } from './byte-reader.ts'
import { encodeI64, encodeU32, joined } from './encode.ts'
import { ModuleError } from './module-error.ts'
import { OPCODE, skipImmediates } from './skip-immediates.ts'

/** A place where a price is due: for all instructions up to the next such place, whichever of them will run. */
interface Toll {
  readonly at: number
  price: number
}

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
  for (let index = 0; index < count; index++) {
    const body = meterBody(section.take(section.u32()), global)
    parts.push(encodeU32(body.length), body)
  }
  return joined(parts)
}

function meterBody(body: Uint8Array, global: number): Uint8Array {
  const code = new Reader(body)
  for (let groups = code.u32(); groups > 0; groups--) {
    code.u32()
    code.byte()
  }
  const parts: (Uint8Array | number[])[] = []
  let copied = 0
  for (const { at, price } of tollsOf(code)) {
    parts.push(body.subarray(copied, at), charge(global, price))
    copied = at
  }
  return joined([...parts, body.subarray(copied)])
}

/** The tolls of one function in order; `code` stands at its first instruction. */
function tollsOf(code: ByteReader): readonly Toll[] {
  const entry: Toll = { at: code.at, price: 1 }
  const tolls = [entry]
  // what each block that is open pays into
  const open: Toll[] = [entry]
  for (let payee: Toll | undefined = entry; payee; payee = open.at(-1)) {
    const opcode = code.byte()
    skipImmediates(opcode, code)
    payee.price += 1
    if (opcode === OPCODE.loop) {
      const toll = { at: code.at, price: 1 }
      tolls.push(toll)
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
