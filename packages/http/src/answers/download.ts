/** Answers that are read from a file or from the store while they are sent, no faster than their reader takes them. */

/** The source of a download's bytes. */
export interface DownloadSource extends AsyncDisposable {
  /** Resolves to the next bytes, and to none at the end. */
  read(): Promise<Uint8Array>
}

export interface DownloadParts {
  readonly headers: Readonly<Record<string, string>>
  /** Called once, when the caller has room for a download. It may add headers. */
  open(): Promise<DownloadSource & { readonly headers?: Readonly<Record<string, string>> }>
}

/** A route returns it instead of a `Response`. */
export class Download {
  readonly #parts: DownloadParts

  constructor(parts: DownloadParts) {
    this.#parts = parts
  }

  /**
   * Opens the source. The end of the body, a reader that goes away, and `close` close it; then `closed` resolves, also when closing fails:
   * the caller has the bytes by then, or does not want them.
   */
  async open(): Promise<{ readonly response: Response; close(): void; readonly closed: Promise<void> }> {
    const source = await this.#parts.open()
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    let isOpen = true
    const close = (): void => {
      if (isOpen) source[Symbol.asyncDispose]().then(resolve, () => resolve())
      isOpen = false
    }
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const piece = await source.read().catch((error: unknown) => {
            close()
            throw error
          })
          if (piece.length > 0) return controller.enqueue(piece)
          close()
          controller.close()
        },
        cancel: close,
      },
      { highWaterMark: 0 },
    )
    return { response: new Response(body, { headers: { ...this.#parts.headers, ...source.headers } }), close, closed }
  }
}
