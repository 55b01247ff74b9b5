/** Answers a connection that does not speak HTTP, or not in time, and closes it. */
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '@sluice/sdk'

/** Closing a connection with unread bytes can lose the answer, so the server reads on for this time. */
const LINGER_MS = 500

interface Answer {
  readonly status: string
  readonly code: ErrorCode
  readonly error: string
}

const MALFORMED: Answer = { status: '400 Bad Request', code: 'invalid_request', error: 'The request is not valid HTTP' }

const ANSWERS: Readonly<Record<string, Answer>> = {
  HPE_HEADER_OVERFLOW: { status: '431 Request Header Fields Too Large', code: 'too_large', error: 'The request headers are too large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: '413 Content Too Large', code: 'too_large', error: 'The chunk extensions are too large' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', code: 'invalid_request', error: 'The request did not arrive in time' },
}

/** Handles the `clientError` event of a server. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) {
    socket.destroy()
    return
  }
  const { status, code, error: text } = ANSWERS[error.code ?? ''] ?? MALFORMED
  const body = JSON.stringify({ error: text, code })
  const head = [
    `HTTP/1.1 ${status}`,
    'Connection: close',
    'Content-Type: application/json',
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

/** Node keeps the response that a socket is writing on the socket itself, and nowhere else. */
const isAnswering = (socket: Duplex & { readonly _httpMessage?: ServerResponse }): boolean => socket._httpMessage?.headersSent ?? false
