/**
 * A motor controller on a serial port: `M <x> <y> <turn> <ms>` and a line feed, in metres and radians a second. It keeps the
 * velocity for that many milliseconds and then stops by itself, so that a cable that comes off stops the robot too.
 */
import { checkDevicePath } from '@sluice/hardware'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { Velocity } from '../core/robot-event.ts'
import { loadSerialPort, type NativePort, type OpenPort } from '../native.ts'
import type { Drive, Hear } from './body.ts'

export interface SerialDrive extends Drive {
  /** Idempotent. */
  close(): Promise<void>
}

export interface SerialDriveOptions {
  readonly path: string
  readonly baud: number
  readonly clock: Clock
  readonly hear: Hear
  /** Default: serialport. */
  readonly load?: () => Promise<OpenPort>
  /** Of the path; default: it is a serial port's own. */
  readonly check?: (path: string) => Promise<void>
}

/** What takes longer to be written is not written any more. */
const WRITE_MS_MAX = 250
/** The line feed before it ends whatever half line there is. */
const HALT = '\nM 0 0 0 0\n'

/** Throws `not_found`, `forbidden` or `unavailable` where there is no such port. */
export async function openSerialDrive(options: SerialDriveOptions): Promise<SerialDrive> {
  const { path, baud, clock, hear, load = loadSerialPort, check = (port) => checkDevicePath(port, 'serial') } = options
  await check(path)
  const port = await opened((await load())({ path, baudRate: baud }), path)
  // What it says is read and forgotten: it would otherwise hold up its own line
  port.resume()
  const fail = (why: string) => hear({ kind: 'fault', what: `the drive on ${path} ${why}` })
  let isClosing = false
  let writing = 0
  let waiting: { readonly velocity: Velocity; readonly untilMs: number } | undefined
  port.on('error', (error) => fail(`failed: ${errorText(error)}`))
  port.on('close', () => isClosing || fail('is gone'))

  const write = async (line: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<'written' | 'failed'>()
    const over = new AbortController()
    writing++
    try {
      port.write(line, (error) => resolve(error ? 'failed' : 'written'))
      const outcome = await Promise.race([promise, clock.sleep(WRITE_MS_MAX, over.signal).then(() => 'late' as const)])
      if (outcome !== 'written' && !isClosing) fail(outcome === 'late' ? 'does not take commands' : 'takes no commands')
    } catch (error) {
      if (!isClosing) fail(`takes no commands: ${errorText(error)}`)
    } finally {
      writing--
      over.abort()
      if (writing === 0) runWaiting()
    }
  }
  /** What is over by then is not written, so that nothing lasts longer than it may. */
  const runWaiting = (): void => {
    if (!waiting || isClosing) return
    const { velocity, untilMs } = waiting
    waiting = undefined
    const forMs = Math.floor(untilMs - clock.monotonicMs())
    if (forMs > 0) void write(lineOf(velocity, forMs))
  }

  return {
    run(velocity, forMs) {
      // Behind one that is still being written it would come late: it waits, and only the last one does
      if (writing > 0) waiting = { velocity, untilMs: clock.monotonicMs() + forMs }
      else void write(lineOf(velocity, forMs))
    },
    halt() {
      waiting = undefined
      return write(HALT)
    },
    async close() {
      if (isClosing) return
      isClosing = true
      const { promise, resolve } = Promise.withResolvers<void>()
      if (port.isOpen) port.close(() => resolve())
      else resolve()
      await promise
    },
  }
}

const lineOf = ({ x, y, turn }: Velocity, forMs: number): string => `M ${x.toFixed(3)} ${y.toFixed(3)} ${turn.toFixed(3)} ${forMs}\n`

async function opened(port: NativePort, path: string): Promise<NativePort> {
  const { promise, resolve, reject } = Promise.withResolvers<NativePort>()
  port.open((error) =>
    error ? reject(new AppError('unavailable', `${path} cannot be opened: ${error.message}`, { cause: error })) : resolve(port),
  )
  return promise
}
