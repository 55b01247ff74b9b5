/** Writes numbers, names and sections in the binary format of WebAssembly. */

/** Encodes a number as unsigned LEB128. */
export function encodeU32(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 128)
  }
  return [...bytes, rest]
}

/** Encodes a number that is not negative as signed LEB128. */
export function encodeI64(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  // The second-highest bit of the last byte is the sign, so it must stay 0.
  while (rest > 0x3f) {
    bytes.push((rest & 0x7f) | 0x80)
    rest = Math.floor(rest / 128)
  }
  return [...bytes, rest]
}

export const encodeName = (name: string): Uint8Array => {
  const bytes = Buffer.from(name)
  return joined([encodeU32(bytes.length), bytes])
}

export const encodeSection = (id: number, content: Uint8Array): Uint8Array => joined([[id], encodeU32(content.length), content])

export function joined(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}
