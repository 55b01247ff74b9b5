/** Opens the connection to a mail server, encrypted from the start if the server expects that. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { MailServer } from './settings.ts'

const CONNECT_MS = 20_000
const KEEP_ALIVE_MS = 60_000

export const closedError = (name: string, reason: string): AppError =>
  new AppError('unavailable', `The connection to ${name} was closed${reason && ` (${reason})`}`)

/** `name` is for error texts. Throws `unavailable`, also when `signal` aborts. Nothing has read from the socket. */
export async function openSocket(server: MailServer, name: string, clock: Clock, signal: AbortSignal): Promise<Socket> {
  const [net, tls] = await Promise.all([import('node:net'), import('node:tls')])
  const { host, port, security, verifyTls } = server
  using scope = signalScope([signal], CONNECT_MS, clock)
  if (signal.aborted) throw closedError(name, 'aborted')
  const plain = { host, port, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS, noDelay: true }
  const isTls = security === 'tls'
  const named = net.isIP(host) === 0 ? { servername: host } : {}
  const socket = isTls ? tls.connect({ ...plain, ...named, rejectUnauthorized: verifyTls }) : net.connect(plain)
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: scope.signal })
    return socket
  } catch (error) {
    // An error may follow while the socket closes.
    socket.on('error', () => undefined).destroy()
    if (scope.timedOut) throw new AppError('unavailable', `${name} did not answer in time`)
    throw closedError(name, signal.aborted ? 'aborted' : errorText(error))
  }
}
