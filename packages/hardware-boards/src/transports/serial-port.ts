/** A serial port as a `Port`. */

import { signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { loadSerialLibrary, type NativePort, type SerialLibrary } from '../native.ts'
import { openError } from './port-access.ts'

/** A port that has just come is often held for a moment by whoever looks at new devices, and its mode is set only then. */
const ATTEMPTS = 3
const ATTEMPT_AGAIN_MS = 250
/** Of an open that hangs in its driver. */
const OPEN_MS_MAX = 5000

export interface SerialOptions {
  readonly path: string
  readonly baud: number
  readonly clock: Clock
  readonly load?: () => Promise<SerialLibrary>
}

/** Throws `unavailable` when it cannot be opened, and `aborted`. */
export async function openSerialPort({ path, baud, clock, load = loadSerialLibrary }: SerialOptions, signal: AbortSignal): Promise<Port> {
  const library = await load()
  for (let attempt = 1; ; attempt++) {
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
    const native = library.port({ path, baudRate: baud })
    try {
      await opened(native, { path, clock, signal })
      return portOf(native, path)
    } catch (cause) {
      native.destroy()
      if (cause instanceof AppError) throw cause
      if (attempt === ATTEMPTS || !/lock|permission|denied|busy|temporarily/i.test(String(cause))) throw await openError(path, cause)
      await clock.sleep(ATTEMPT_AGAIN_MS, signal)
    }
  }
}

async function opened(
  native: NativePort,
  { path, clock, signal }: { readonly path: string; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  using given = signalScope([signal])
  const open = new Promise<void>((resolve, reject) => {
    // Without a listener a late error of the stream would end the process.
    native.on('error', reject)
    native.open((error) => {
      if (error) return reject(error)
      // Nobody waits for it any more, and a port that is held cannot be opened again.
      if (given.signal.aborted) native.close(() => undefined)
      resolve()
    })
  })
  const late = clock.sleep(OPEN_MS_MAX, given.signal).then(() => {
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
    if (!given.signal.aborted) throw new AppError('unavailable', `${path} did not open within ${OPEN_MS_MAX / 1000} s`)
  })
  await Promise.race([open, late])
}

function portOf(native: NativePort, path: string): Port {
  const readers = new Set<(bytes: Uint8Array) => void>()
  const closers = new Set<() => void>()
  let modemLines: { readonly dtr?: boolean; readonly rts?: boolean } = { dtr: true, rts: true }
  let over = false
  const end = (): void => {
    if (over) return
    over = true
    for (const closer of [...closers]) closer()
    closers.clear()
    readers.clear()
  }
  native.on('data', (bytes) => {
    for (const reader of readers) reader(bytes)
  })
  native.on('close', end)
  // A port that has failed while open is of no more use; the next call opens it anew.
  native.on('error', () => {
    if (!native.isOpen) end()
    else native.close(end)
  })
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (over) return reject(gone(path))
        native.write(bytes, (error) => (error ? reject(gone(path, error)) : resolve()))
      }),
    onData(callback) {
      readers.add(callback)
      return () => void readers.delete(callback)
    },
    onClose(callback) {
      if (over) queueMicrotask(callback)
      else closers.add(callback)
      return () => void closers.delete(callback)
    },
    signals: (lines) =>
      new Promise((resolve) => {
        if (over) return resolve()
        // Each call sets all of them, so those that are not named are given as they were.
        modemLines = { ...modemLines, ...lines }
        // A line without modem signals, such as a PTY, refuses them: there is nothing to set then.
        native.set(modemLines, () => resolve())
      }),
    close: () =>
      new Promise((resolve) => {
        if (over || !native.isOpen) {
          end()
          return resolve()
        }
        native.close(() => {
          end()
          resolve()
        })
      }),
  }
}

const gone = (path: string, cause?: Error): AppError => new AppError('unavailable', `${path} is not open any more`, cause ? { cause } : {})
