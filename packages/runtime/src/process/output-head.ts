/** The head of a process's output stream, as text, within a limit. */
import { ByteBuffer } from '@sluice/kit'

export interface OutputHead {
  push(chunk: Uint8Array): void
  /** What was kept; a last line says how much was dropped. */
  text(): string
  readonly truncated: boolean
}

/** Keeps the first `bytesMax` bytes; `onText` sees each kept piece as it comes. */
export function createOutputHead(bytesMax: number, onText: (text: string) => void = () => {}): OutputHead {
  const kept = new ByteBuffer()
  const decoder = new TextDecoder()
  let dropped = 0

  const tell = (text: string) => {
    if (text !== '') onText(text)
  }

  return {
    push(chunk) {
      const head = chunk.subarray(0, bytesMax - kept.length)
      dropped += chunk.length - head.length
      kept.append(head)
      if (head.length > 0) tell(decoder.decode(head, { stream: true }))
    },
    text() {
      // A character that the limit cut is dropped; one that the program itself left unfinished shows.
      if (dropped === 0) tell(decoder.decode())
      const text = new TextDecoder().decode(kept.bytes(), { stream: dropped > 0 })
      return dropped === 0 ? text : `${text}\n[… ${dropped} more bytes were dropped]`
    },
    get truncated() {
      return dropped > 0
    },
  }
}
