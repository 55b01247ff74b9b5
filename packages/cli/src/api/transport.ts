/** Carries requests of the API over HTTP: to the control socket of a data directory, or to the address of a daemon. */
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import type { InProcess } from '@sluice/daemon/in-process'
import { AppError, errorText } from '@sluice/sdk'

export interface ApiRequest {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

export interface ApiResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: AsyncIterable<Uint8Array>
}

export interface Transport {
  /** Rejects with the error of the system without an answer. */
  send(request: ApiRequest): Promise<ApiResponse>
  close(): Promise<void>
}

/** The address of a daemon: its control socket, or `http://host:port` with the token to send. */
export type Address = { readonly socketPath: string } | { readonly url: URL; readonly token: string | undefined }

/** Returns a transport that keeps its connection. */
export async function connectHttp(address: Address): Promise<Transport> {
  const isSecure = 'url' in address && address.url.protocol === 'https:'
  const { Agent: SecureAgent, request: requestSecurely } = isSecure ? await import('node:https') : {}
  const agent = new (SecureAgent ?? Agent)({ keepAlive: true })
  const request = requestSecurely ?? requestHttp
  const send = ({ method, path, headers, body, signal }: ApiRequest): Promise<ApiResponse> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const sent = request({
        ...targetOf(address, path),
        agent,
        method,
        headers: { ...bodyHeaders(text), ...authorization(address), ...headers },
        ...(signal && { signal }),
      })
      sent.on('response', (response: IncomingMessage) => resolve(responseOf(response)))
      sent.on('error', reject)
      sent.end(text)
    })
  return { send, close: async () => agent.destroy() }
}

/** The name of the control socket in the Host header. */
const SOCKET_HOST = 'localhost'

function targetOf(address: Address, path: string) {
  if ('socketPath' in address) return { socketPath: address.socketPath, host: SOCKET_HOST, path }
  const { protocol, hostname, port, pathname } = address.url
  return { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port, path: pathname.replace(/\/$/, '') + path }
}

const bodyHeaders = (text: string | undefined): Record<string, string | number> =>
  text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }

const authorization = (address: Address): Record<string, string> =>
  'token' in address && address.token !== undefined ? { authorization: `Bearer ${address.token}` } : {}

const responseOf = (response: IncomingMessage): ApiResponse => ({
  status: response.statusCode ?? 0,
  headers: { get: (name) => headerText(response.headers, name) },
  body: response,
})

function headerText(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : (value ?? null)
}

/** Returns a transport to the application in this process. The error of a route is the error of `send`. */
export const connectInProcess = ({ serve, close }: InProcess): Transport => ({
  async send(request) {
    const answer = await serve(request)
    const headers = new Map([['content-type', 'application/json']])
    if (!isStream(answer))
      return { status: 200, headers: { get: (name) => headers.get(name) ?? null }, body: bytesOf(JSON.stringify(answer)) }
    return { status: answer.status, headers: answer.headers, body: answer.body }
  },
  close,
})

const isStream = (answer: unknown): answer is Response & { readonly body: NonNullable<Response['body']> } =>
  typeof answer === 'object' && answer !== null && 'body' in answer && 'arrayBuffer' in answer && answer.body !== null

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

/** Explains an error of the connection to `where`. If the request of an action was sent, the action may have been carried out. */
export function noAnswer(where: string, cause: unknown, method: string): AppError {
  const { syscall, name } = cause as NodeJS.ErrnoException
  const wasSent = syscall !== 'connect' && syscall !== 'getaddrinfo'
  const text =
    method !== 'GET' && wasSent && name !== 'AbortError'
      ? `${where} ended the connection before it answered (${errorText(cause)}). The action may have been carried out: look before you repeat it.`
      : `${where} cannot be reached: ${errorText(cause)}`
  return new AppError('unavailable', text, { cause })
}
