/** A state of a database that does not change while other processes go on writing, as the files to copy. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { AppError } from '@sluice/sdk'

const CHUNK_BYTES = 256 * 1024
const BUSY_MS_MAX = 5000
/** SQLite rewrites the header of the log when it restarts the log. */
const LOG_HEADER_BYTES = 32
const LOG_ATTEMPTS_MAX = 100
const FAULTS_MAX = 20

/** One file of a snapshot. */
export interface SnapshotFile {
  readonly name: 'sluice.db' | 'sluice.db-wal'
  readonly bytes: number
  /** Yields exactly `bytes` bytes. Each chunk is new memory. */
  chunks(): Iterable<Uint8Array>
}

export interface Snapshot {
  /** The schema version of the database. */
  readonly schema: number
  /** The files to copy. Opened together, they are the database in the state of the snapshot. */
  readonly files: readonly SnapshotFile[]
  /** Ends the snapshot. Idempotent. */
  close(): void
}

/**
 * Pins a consistent state of a database: its file, and its write-ahead log for the commits that the file does not have yet. A reader
 * keeps SQLite from writing later commits to the file, so the file may be copied slowly while a daemon writes. Checks the structure
 * of the database first. Throws `unavailable` if the database is damaged or cannot be read.
 *
 * Do not call this in a process that has another connection to the file: closing a file drops all locks of the process on it.
 */
export function openSnapshot(file: string): Snapshot {
  const connection = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS_MAX })
  let descriptor: number | undefined
  const close = (): void => {
    // The connection closes first: its locks on the file end with the first descriptor that closes.
    if (connection.isOpen) connection.close()
    if (descriptor !== undefined) closeSync(descriptor)
    descriptor = undefined
  }
  try {
    connection.exec('BEGIN')
    const { user_version: schema } = connection.prepare('PRAGMA user_version').get() as { user_version: number }
    const log = readLog(`${file}-wal`)
    requireSound(connection, file)
    const opened = openSync(file, 'r')
    descriptor = opened
    const bytes = fstatSync(opened).size
    const files: SnapshotFile[] = [{ name: 'sluice.db', bytes, chunks: () => readChunks(opened, bytes) }]
    if (log.length > 0) files.push({ name: 'sluice.db-wal', bytes: log.length, chunks: () => [log] })
    return { schema, files, close }
  } catch (error) {
    close()
    throw error
  }
}

function requireSound(connection: DatabaseSync, file: string): void {
  const rows = connection.prepare(`PRAGMA quick_check(${FAULTS_MAX})`).all() as { quick_check: string }[]
  const faults = rows.map((row) => row.quick_check).filter((fault) => fault !== 'ok')
  if (faults.length === 0) return
  throw new AppError('unavailable', `${file} is damaged, so it is not backed up: ${faults.join('; ')}. Restore the last good backup.`)
}

/**
 * Reads the log in one piece. A log that is restarted meanwhile is read again: a mixture of both would undo pages of the file.
 * Bytes after the last whole commit do no harm, because SQLite stops there.
 */
function readLog(path: string): Uint8Array {
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Uint8Array()
    throw error
  }
  try {
    for (let attempt = 0; attempt < LOG_ATTEMPTS_MAX; attempt++) {
      const log = readWhole(descriptor)
      const header = Buffer.alloc(Math.min(LOG_HEADER_BYTES, log.length))
      readSync(descriptor, header, 0, header.length, 0)
      if (header.equals(log.subarray(0, header.length))) return log
    }
    throw new AppError('unavailable', `${path} changes too fast to be read. Try again.`)
  } finally {
    closeSync(descriptor)
  }
}

function readWhole(descriptor: number): Buffer {
  const log = Buffer.alloc(fstatSync(descriptor).size)
  let length = 0
  for (let read = -1; read !== 0 && length < log.length; length += read)
    read = readSync(descriptor, log, length, log.length - length, length)
  return log.subarray(0, length)
}

function* readChunks(descriptor: number, bytes: number): Iterable<Uint8Array> {
  for (let at = 0; at < bytes; ) {
    const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, bytes - at))
    const read = readSync(descriptor, chunk, 0, chunk.length, at)
    if (read === 0) throw new AppError('unavailable', 'The database became shorter while it was copied. Try again.')
    yield chunk.subarray(0, read)
    at += read
  }
}
