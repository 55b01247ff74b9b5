// How texts get in and out: as UTF-8 in the plugin's memory. The same for every plugin.

/** Sluice asks for room before it writes a text there. */
export function alloc(length: usize): usize {
  return heap.alloc(length)
}

export function toText(at: usize, length: usize): string {
  return String.UTF8.decodeUnsafe(at, length)
}

/** Where a text is and how many bytes it has, in one number. */
export function fromText(text: string): u64 {
  const bytes = String.UTF8.encode(text)
  return ((<u64>changetype<usize>(bytes)) << 32) | <u64>bytes.byteLength
}
