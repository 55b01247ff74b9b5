/** Completes streams that end with `[DONE]` and gave no `finish_reason`, which the AI SDK would read as broken off. */

import { mapStream, type StreamMapping } from '@sluice/provider-common'

const FINISHED = Buffer.from('\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
const REASON = /"finish_reason"\s*:\s*"/
const DONE = /data:\s*\[DONE\]\s*$/
/** The characters of a chunk that are read again with the next one, because a chunk may end anywhere. */
const TAIL_CHARS = 64

/** Wraps `fetch`. A stream that ends without `[DONE]` stays as it is. */
export function withFinishReason(plainFetch: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await plainFetch(input, init)
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (!response.ok || !isStream || !response.body) return response
    const { status, statusText, headers } = response
    return new Response(mapStream(response.body, finishing()), { status, statusText, headers })
  }
}

function finishing(): StreamMapping<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let tail = ''
  let hasReason = false
  return {
    push(chunk, emit) {
      emit(chunk)
      if (hasReason) return
      const text = tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1')
      hasReason = REASON.test(text)
      tail = text.slice(-TAIL_CHARS)
    },
    end(emit) {
      if (!hasReason && DONE.test(tail)) emit(FINISHED)
    },
  }
}
