/** Binds the server of the control socket. The mode of its file decides who is an operator: only the user of the daemon, and root. */
import { chmodSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { dirname, join } from 'node:path'
import { AppError, errorText, type Logger } from '@sluice/sdk'
import { type ControlAddress, controlAddress } from './control-address.ts'

/** No permission for the group and for others. */
const PRIVATE = 0o600
/** With this prefix, the path of the new socket is at most as long as the path of the socket that it replaces. */
const FOLDER_PREFIX = '.c-'

/**
 * Accepts connections on the control socket of the data directory, and replaces the socket that a crash left behind: the caller
 * must hold the lock of the directory. Where the system allows no socket there, logs the reason, and commands cannot reach this daemon.
 */
export async function bindControlSocket(server: Server, dataDir: string, log: Logger): Promise<void> {
  let address: ControlAddress | undefined
  try {
    address = controlAddress(dataDir)
    if (address.isFile) await listenPrivately(server, address.path)
    else await listening(server, address.path)
    server.on('close', address.release)
  } catch (error) {
    address?.release()
    log.warn('The control socket could not be opened: commands cannot reach this daemon', { error: errorText(error) })
  }
}

/**
 * The socket is made in a folder that only this user can enter, and moved to its place once it is private, too: the mode that the
 * process gives new files belongs to the whole program.
 */
async function listenPrivately(server: Server, path: string): Promise<void> {
  const folder = mkdtempSync(join(dirname(path), FOLDER_PREFIX))
  const made = join(folder, 's')
  try {
    await listening(server, made)
    chmodSync(made, PRIVATE)
    renameSync(made, path)
    // Node removes the file where the socket was made.
    server.on('close', () => rmSync(path, { force: true }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function listening(server: Server, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (cause: Error): void => reject(new AppError('unavailable', cause.message, { cause }))
  server.once('error', fail)
  server.listen({ path }, () => {
    server.off('error', fail)
    resolve()
  })
  return promise
}
