/**
 * A motor controller on a serial port. It takes lines `M <x> <y> <turn> <ms>`, in metres and radians per second, keeps that
 * velocity for the given milliseconds and then stops by itself, so the robot also stops when the cable comes off.
 */
import { checkDevicePath } from '@sluice/hardware'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { Velocity } from '../core/robot-event.ts'
import { loadSerialPort, type NativePort, type OpenPort } from '../native.ts'
import type { Drive, Report } from './body.ts'

/** The functions for the serial port; tests replace them. */
export interface PortAccess {
  /** Loads serialport unless given. */
  readonly load?: () => Promise<OpenPort>
  /** Checks that the path belongs to a serial port, unless tests replace the check. */
  readonly check?: (path: string) => Promise<void>
}

/** A write that takes longer counts as a fault of the drive. */
const WRITE_MS_MAX = 250
/** The leading line feed ends a line that was written in part. */
const HALT = '\nM 0 0 0 0\n'

export class SerialDrive implements Drive {
  readonly #port: NativePort
  readonly #path: string
  readonly #clock: Clock
  readonly #report: Report
  #isClosing = false
  #writing = 0
  /** The command to write after the current one; a later command replaces it. */
  #next: { readonly velocity: Velocity; readonly untilMs: number } | undefined

  private constructor(port: NativePort, path: string, clock: Clock, report: Report) {
    this.#port = port
    this.#path = path
    this.#clock = clock
    this.#report = report
    // Reads the controller's output and drops it: an unread line would block the controller.
    port.resume()
    port.on('error', (error) => this.#fail(`failed: ${errorText(error)}`))
    port.on('close', () => this.#failUnlessClosing('is gone'))
  }

  /**
   * Throws `not_found`, `forbidden` or `unavailable` when the port cannot be opened, and `invalid_request` when `path` is not
   * a port.
   */
  static async open(path: string, baud: number, clock: Clock, report: Report, access: PortAccess = {}): Promise<SerialDrive> {
    const { load = loadSerialPort, check = (port: string) => checkDevicePath(port, 'serial') } = access
    await check(path)
    const port = (await load())({ path, baudRate: baud })
    await openPort(port, path)
    return new SerialDrive(port, path, clock, report)
  }

  run(velocity: Velocity, forMs: number): void {
    // Behind a write in progress the command would start late, so it waits and is shortened by the delay.
    if (this.#writing > 0) this.#next = { velocity, untilMs: this.#clock.monotonicMs() + forMs }
    else void this.#write(lineOf(velocity, forMs))
  }

  halt(): Promise<void> {
    this.#next = undefined
    return this.#write(HALT)
  }

  /** Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#port.isOpen) this.#port.close(() => resolve())
    else resolve()
    await promise
  }

  async #write(line: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<'written' | 'failed'>()
    const over = new AbortController()
    this.#writing++
    try {
      this.#port.write(line, (error) => resolve(error ? 'failed' : 'written'))
      const outcome = await Promise.race([promise, this.#clock.sleep(WRITE_MS_MAX, over.signal).then(() => 'late' as const)])
      if (outcome === 'late') this.#failUnlessClosing(`took no command for ${WRITE_MS_MAX} ms`)
      if (outcome === 'failed') this.#failUnlessClosing('takes no commands')
    } catch (error) {
      this.#failUnlessClosing(`takes no commands: ${errorText(error)}`)
    } finally {
      this.#writing--
      over.abort()
      if (this.#writing === 0) this.#runNext()
    }
  }

  /** Writes the waiting command for the time that is left of it, so that it never lasts longer than it may. */
  #runNext(): void {
    if (!this.#next || this.#isClosing) return
    const { velocity, untilMs } = this.#next
    this.#next = undefined
    const forMs = Math.floor(untilMs - this.#clock.monotonicMs())
    if (forMs > 0) void this.#write(lineOf(velocity, forMs))
  }

  #fail(why: string): void {
    this.#report({ kind: 'fault', what: `the drive on ${this.#path} ${why}` })
  }

  #failUnlessClosing(why: string): void {
    if (!this.#isClosing) this.#fail(why)
  }
}

const lineOf = ({ x, y, turn }: Velocity, forMs: number): string => `M ${x.toFixed(3)} ${y.toFixed(3)} ${turn.toFixed(3)} ${forMs}\n`

async function openPort(port: NativePort, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  port.open((error) =>
    error ? reject(new AppError('unavailable', `${path} cannot be opened: ${error.message}`, { cause: error })) : resolve(),
  )
  await promise
}
