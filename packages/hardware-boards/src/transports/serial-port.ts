/** Opens a serial port of this machine as a `Port`. */
import { signalScope } from '@sluice/kit'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { loadSerialLibrary, type NativePort, type SerialLibrary } from '../native.ts'
import { openError } from './port-access.ts'

/** A new port is often held for a moment by another program that probes it, and gets its permissions only after its name. */
const ATTEMPTS = 3
const ATTEMPT_AGAIN_MS = 250
/** Limits an open that hangs in its driver. */
const OPEN_MS_MAX = 5000

/** Throws `unavailable` when the port cannot be opened, with the cause and the cure, and `aborted`. */
export async function openSerialPort(
  path: string,
  baud: number,
  clock: Clock,
  signal: AbortSignal,
  load: () => Promise<SerialLibrary> = loadSerialLibrary,
): Promise<Port> {
  const library = await load()
  for (let attempt = 1; ; attempt++) {
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
    const native = library.port({ path, baudRate: baud })
    try {
      await openNative(native, path, clock, signal)
      return portOf(native, path)
    } catch (cause) {
      native.destroy()
      if (cause instanceof AppError) throw cause
      if (attempt === ATTEMPTS || !/lock|permission|denied|busy|temporarily/i.test(String(cause))) throw await openError(path, cause)
      await clock.sleep(ATTEMPT_AGAIN_MS, signal)
    }
  }
}

async function openNative(native: NativePort, path: string, clock: Clock, signal: AbortSignal): Promise<void> {
  using given = signalScope([signal])
  const open = new Promise<void>((resolve, reject) => {
    // Without this listener, a late error of the stream would end the process.
    native.on('error', reject)
    native.open((error) => {
      if (error) return reject(error)
      // The call has already failed, and a port that stays open could not be opened again.
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
  let isOver = false
  const end = (): void => {
    if (isOver) return
    isOver = true
    for (const closer of [...closers]) closer()
    closers.clear()
    readers.clear()
  }
  native.on('data', (bytes) => {
    for (const reader of readers) reader(bytes)
  })
  native.on('close', end)
  // A port that failed while open is closed; the next call opens it again.
  native.on('error', () => {
    if (!native.isOpen) end()
    else native.close(end)
  })
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        if (isOver) return reject(gone(path))
        native.write(bytes, (error) => (error ? reject(gone(path, error)) : resolve()))
      }),
    onData(callback) {
      readers.add(callback)
      return () => void readers.delete(callback)
    },
    onClose(callback) {
      if (isOver) queueMicrotask(callback)
      else closers.add(callback)
      return () => void closers.delete(callback)
    },
    signals: (lines) =>
      new Promise((resolve) => {
        if (isOver) return resolve()
        // The library sets all lines at once, so the others keep their last values.
        modemLines = { ...modemLines, ...lines }
        // A line without modem signals, such as a PTY, refuses them, which does no harm.
        native.set(modemLines, () => resolve())
      }),
    close: () =>
      new Promise((resolve) => {
        if (isOver || !native.isOpen) {
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

const gone = (path: string, cause?: Error): AppError => new AppError('unavailable', `${path} is no longer open`, cause ? { cause } : {})
