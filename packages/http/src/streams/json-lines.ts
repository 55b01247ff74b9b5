/** An answer that grows: one JSON object per line. */

/** A caller that leaves more unread lines, or more unread bytes, is disconnected: the work does not wait for its reader. */
const LINES_UNREAD_MAX = 4096
const BYTES_UNREAD_MAX = 16 * 1024 * 1024

/** Unread lines and their end, as the body reads them. */
class UnreadLines {
  readonly #lines: Buffer[] = []
  #bytes = 0
  #end: { readonly error?: unknown } | undefined
  #changed = Promise.withResolvers<void>()
  #whenRead: (() => void) | undefined

  get isTooMuch(): boolean {
    return this.#lines.length > LINES_UNREAD_MAX || (this.#bytes > BYTES_UNREAD_MAX && this.#lines.length > 1)
  }

  push(line: Buffer): void {
    this.#lines.push(line)
    this.#bytes += line.length
    this.#changed.resolve()
  }

  /** No more lines come. `onUnread` is called if some are unread, and its result once they are read or dropped. */
  end(onUnread?: () => () => void): void {
    this.#end ??= {}
    if (this.#lines.length > 0) this.#whenRead = onUnread?.()
    this.#changed.resolve()
  }

  fail(error: unknown): void {
    this.#end = { error }
    this.drop()
    this.#changed.resolve()
  }

  drop(): void {
    this.#lines.length = 0
    this.#bytes = 0
    this.#whenRead?.()
    this.#whenRead = undefined
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#lines.length === 0 && !this.#end) {
      this.#changed = Promise.withResolvers()
      await this.#changed.promise
    }
    const line = this.#lines.shift()
    if (line) {
      this.#bytes -= line.length
      controller.enqueue(line)
    } else if (this.#end && 'error' in this.#end) controller.error(this.#end.error)
    else {
      this.drop()
      controller.close()
    }
  }
}

/**
 * Returns an answer with the lines that `work` sends, which ends with `work`. `work` must not reject; its signal aborts when
 * the caller goes away. See `UnreadLines.end` for `onUnread`.
 */
export function jsonLines<Line>(
  caller: AbortSignal,
  work: (send: (line: Line) => void, signal: AbortSignal) => Promise<void>,
  onUnread?: () => () => void,
): Response {
  const aborted = new AbortController()
  const unread = new UnreadLines()
  const leave = (): void => {
    aborted.abort()
    unread.fail(caller.reason)
  }
  caller.addEventListener('abort', leave, { once: true })
  const send = (line: Line): void => {
    if (aborted.signal.aborted) return
    unread.push(Buffer.from(`${JSON.stringify(line)}\n`))
    if (!unread.isTooMuch) return
    aborted.abort()
    unread.fail(new Error('the caller reads too slowly'))
  }
  void work(send, aborted.signal).then(() => {
    if (!aborted.signal.aborted) unread.end(onUnread)
  })
  const cancel = (): void => {
    aborted.abort()
    unread.drop()
  }
  const body = new ReadableStream<Uint8Array>({ pull: (controller) => unread.pull(controller), cancel }, { highWaterMark: 0 })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson' } })
}
