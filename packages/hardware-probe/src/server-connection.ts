/** TCP connections to the operator's debug servers, with a time limit. */
import { connect, type Socket } from 'node:net'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import { type Endpoint, parseEndpoint } from './config.ts'

export interface ConnectionLimits {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Connects to a server and runs `work`, which closes the socket and stops when its signal aborts. `source` names the server in errors.
 * Throws `upstream_timeout` when connection and work take too long, `aborted` when the caller's signal aborts, and `unavailable` when
 * the server does not answer.
 */
export async function withServer<Result>(
  source: string,
  server: string,
  { clock, timeoutMs, signal }: ConnectionLimits,
  work: (socket: Socket, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  using scope = signalScope([signal], timeoutMs, clock)
  try {
    return await work(await openSocket(parseEndpoint(server), scope.signal), scope.signal)
  } catch (cause) {
    if (scope.timedOut)
      throw new AppError('upstream_timeout', `Reading through ${source} took longer than ${timeoutMs / 1000} s`, { cause })
    if (signal.aborted) throw new AppError('aborted', 'The reading was aborted', { cause })
    throw cause
  }
}

/** Returns a connected socket that already has a listener for later errors. Throws `unavailable`, or the reason of the signal. */
export async function openSocket({ host, port }: Endpoint, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const socket = connect({ host, port, noDelay: true })
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', () => resolve(socket))
  socket.once('error', (cause: NodeJS.ErrnoException) =>
    reject(new AppError('unavailable', `No server answers at ${host}:${port} (${cause.code ?? cause.message})`, { cause })),
  )
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
