/** The first bytes of a process's output stream, as text. */
import { ByteBuffer } from '@sluice/kit'

/** Keeps the first `bytesMax` bytes of a stream, and counts the rest. */
export class OutputHead {
  readonly #bytesMax: number
  readonly #onText: (text: string) => void
  readonly #kept = new ByteBuffer()
  readonly #decoder = new TextDecoder()
  #droppedBytes = 0

  /** `onText` gets each kept piece as it arrives; a character that two chunks share arrives with the second. */
  constructor(bytesMax: number, onText: (text: string) => void = () => {}) {
    this.#bytesMax = bytesMax
    this.#onText = onText
  }

  get isTruncated(): boolean {
    return this.#droppedBytes > 0
  }

  push(chunk: Uint8Array): void {
    const head = chunk.subarray(0, this.#bytesMax - this.#kept.length)
    this.#droppedBytes += chunk.length - head.length
    this.#kept.append(head)
    if (head.length > 0) this.#emit(this.#decoder.decode(head, { stream: true }))
  }

  /** The kept text, to be read at the end of the stream; its last line says how many bytes were dropped, if any were. */
  text(): string {
    // A character that the limit cut is dropped; one that the program itself left unfinished is shown as U+FFFD.
    if (!this.isTruncated) this.#emit(this.#decoder.decode())
    const text = new TextDecoder().decode(this.#kept.bytes(), { stream: this.isTruncated })
    return this.isTruncated ? `${text}\n[… ${this.#droppedBytes} more bytes were dropped]` : text
  }

  #emit(text: string): void {
    if (text !== '') this.#onText(text)
  }
}
