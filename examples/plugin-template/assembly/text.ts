// Passes texts in and out as UTF-8 in the plugin's memory. Every plugin can use this file unchanged.

/** Sluice calls this function to allocate memory for a text before it writes the text. */
export function alloc(length: usize): usize {
  return heap.alloc(length)
}

/** Returns the text of `length` bytes at the address `at`. */
export function toText(at: usize, length: usize): string {
  return String.UTF8.decodeUnsafe(at, length)
}

/** Returns the address of a text in the upper 32 bits, and its number of bytes in the lower 32 bits. */
export function fromText(text: string): u64 {
  const bytes = String.UTF8.encode(text)
  return ((<u64>changetype<usize>(bytes)) << 32) | <u64>bytes.byteLength
}
