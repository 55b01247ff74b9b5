/** Binds the server of the control socket. The mode of its file decides who is an operator: only the user of the daemon, and root. */
import { rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { AppError, errorText, type Logger } from '@sluice/sdk'
import { type ControlAddress, controlAddress } from './control-address.ts'

/** No permission for the group and for others. */
const PRIVATE_UMASK = 0o177

/**
 * Accepts connections on the control socket of the data directory, and replaces the socket that a crash left behind: the caller
 * must hold the lock of the directory. Where the system allows no socket there, logs the reason, and commands cannot reach this daemon.
 */
export async function bindControlSocket(server: Server, dataDir: string, log: Logger): Promise<void> {
  let address: ControlAddress | undefined
  try {
    address = controlAddress(dataDir)
    if (address.isFile) rmSync(address.path, { force: true })
    await listenPrivately(server, address.path)
    // Node removes the file when the server closes, which needs the folder.
    server.on('close', address.release)
  } catch (error) {
    address?.release()
    log.warn('The control socket could not be opened: commands cannot reach this daemon', { error: errorText(error) })
  }
}

/** Node creates the socket before `listen` returns, so that no other file gets the mode. */
function listenPrivately(server: Server, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (cause: Error): void => reject(new AppError('unavailable', cause.message, { cause }))
  server.once('error', fail)
  const before = process.umask(PRIVATE_UMASK)
  try {
    server.listen({ path }, () => {
      server.off('error', fail)
      resolve()
    })
  } finally {
    process.umask(before)
  }
  return promise
}
