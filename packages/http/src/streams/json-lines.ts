/** An answer that grows: one JSON object per line. */

/** A caller that leaves more unread lines than this is disconnected: the work does not wait for its reader. */
const LINES_UNREAD_MAX = 4096

/**
 * Returns an answer with the lines that `work` sends, which ends with `work`. `work` must not reject; its signal aborts when
 * the caller goes away.
 */
export function jsonLines<Line>(caller: AbortSignal, work: (send: (line: Line) => void, signal: AbortSignal) => Promise<void>): Response {
  const aborted = new AbortController()
  const abort = (): void => aborted.abort()
  caller.addEventListener('abort', abort, { once: true })
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send = (line: Line): void => {
          if (aborted.signal.aborted) return
          controller.enqueue(Buffer.from(`${JSON.stringify(line)}\n`))
          if ((controller.desiredSize ?? 0) > 0) return
          abort()
          controller.error(new Error('the caller reads too slowly'))
        }
        void work(send, aborted.signal).then(() => {
          caller.removeEventListener('abort', abort)
          if (!aborted.signal.aborted) controller.close()
          // A caller in this process reads on until the body ends.
          else controller.error(caller.reason)
        })
      },
      cancel: abort,
    },
    { highWaterMark: LINES_UNREAD_MAX },
  )
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson' } })
}
