/** A TCP connection to a server of the operator's. */
import { connect, type Socket } from 'node:net'
import { AppError } from '@sluice/sdk'
import type { Endpoint } from './config.ts'

/** Connected, with a listener for later errors. Throws `unavailable`, or the signal's reason. */
export async function openSocket({ host, port }: Endpoint, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const socket = connect({ host, port, noDelay: true })
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  socket.once('connect', () => resolve(socket))
  socket.once('error', (cause: NodeJS.ErrnoException) =>
    reject(new AppError('unavailable', `Nothing answers at ${host}:${port} (${cause.code ?? cause.message})`, { cause })),
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
