/** The address of the control socket, over which the command line reaches the daemon of a data directory. */
import { createHash } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'

/** The name of the socket in the data directory. */
const SOCKET_FILE = 'control.sock'
/** The longest path of a socket in bytes, without its terminating zero. */
const PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103

export interface ControlAddress {
  /** The path to pass to `net.connect` and `server.listen`; valid until `release`. */
  readonly path: string
  /** True: the path is a file, which a crash leaves behind. */
  readonly isFile: boolean
  /** Idempotent. */
  release(): void
}

/**
 * Returns the address for a data directory: a socket in it or, on Windows, a named pipe. Where the path is too long for a socket,
 * Linux reaches it through the open folder. Throws `unavailable` where that is not possible, and errors of the file system.
 */
export function controlAddress(dataDir: string): ControlAddress {
  if (process.platform === 'win32') return { path: pipeOf(dataDir), isFile: false, release: () => {} }
  const path = join(dataDir, SOCKET_FILE)
  if (Buffer.byteLength(path) <= PATH_BYTES_MAX) return { path, isFile: true, release: () => {} }
  if (process.platform !== 'linux')
    throw new AppError(
      'unavailable',
      `${path} is too long for a socket, which may have ${PATH_BYTES_MAX} bytes: give the data directory a shorter path`,
    )
  return inOpenFolder(dataDir)
}

function inOpenFolder(dataDir: string): ControlAddress {
  const folder = openSync(dataDir, constants.O_RDONLY | constants.O_DIRECTORY)
  let isOpen = true
  return {
    path: `/proc/self/fd/${folder}/${SOCKET_FILE}`,
    isFile: true,
    release() {
      if (isOpen) closeSync(folder)
      isOpen = false
    },
  }
}

/** Windows compares paths without their case. */
const pipeOf = (dataDir: string): string =>
  `\\\\.\\pipe\\sluice-${createHash('sha256').update(dataDir.toLowerCase()).digest('hex').slice(0, 32)}`
