/** The head of a process's output stream, as text, within a limit. */

export interface OutputHead {
  push(chunk: Uint8Array): void
  /** What was kept; a last line says how much was dropped. */
  text(): string
  readonly truncated: boolean
}

/** Keeps the first `bytesMax` bytes; `onText` sees each kept piece as it comes. */
export function createOutputHead(bytesMax: number, onText: (text: string) => void = () => {}): OutputHead {
  const decoder = new TextDecoder()
  let kept = ''
  let bytes = 0
  let dropped = 0

  const keep = (text: string) => {
    kept += text
    if (text !== '') onText(text)
  }

  return {
    push(chunk) {
      const head = chunk.subarray(0, bytesMax - bytes)
      bytes += head.length
      dropped += chunk.length - head.length
      if (head.length > 0) keep(decoder.decode(head, { stream: true }))
    },
    text() {
      // a character cut by the limit is dropped, one the program itself left unfinished shows
      if (dropped === 0) keep(decoder.decode())
      return dropped === 0 ? kept : `${kept}\n[… ${dropped} more bytes were dropped]`
    },
    get truncated() {
      return dropped > 0
    },
  }
}
