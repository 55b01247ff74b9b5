/** Keys of values as bytes, and the ranges of keys with one prefix. */

/** UTF-16 with the high byte first sorts like JavaScript strings and preserves invalid Unicode. */
export const toBytes = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()

export const toText = (bytes: Uint8Array): string => Buffer.from(bytes).swap16().toString('utf16le')

/** Returns the least bytes above all keys that start with `prefix`; undefined if none exist. */
export function endOfPrefix(prefix: Buffer): Buffer | undefined {
  const last = prefix.findLastIndex((byte) => byte < 0xff)
  if (last < 0) return undefined
  const end = Buffer.from(prefix.subarray(0, last + 1))
  end.writeUInt8(end.readUInt8(last) + 1, last)
  return end
}
