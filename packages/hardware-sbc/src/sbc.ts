/** The single-board computer that Sluice runs on: its header pins and its activity LED under one interface. */
import type { Level } from '@sluice/hardware'
import { AppError, errorText, type Host } from '@sluice/sdk'
import { ActivityLed } from './activity-led.ts'
import { writeDeviceProfile } from './describe-board.ts'
import { detectBoard, type SbcBoard } from './detect-board.ts'
import { HeaderPins, type OpenGpio, type PinReading } from './header-pins.ts'
import { PIN_MAX } from './pin-rules.ts'

/** The parts of the machine that a test replaces. */
export interface Machine {
  /** The folder that contains `/proc`, `/sys` and `/dev`. */
  readonly root: string
  readonly openGpio: OpenGpio
}

/** A BCM number, or the name of the activity LED. */
export type Pin = number | 'led'

interface DetectedBoard extends SbcBoard {
  readonly pins: HeaderPins
}

/** Every method that needs the board throws `unavailable` on another machine and after `close`. */
export class Sbc {
  readonly #host: Host
  readonly #machine: Machine
  readonly #led: ActivityLed
  #detecting: Promise<DetectedBoard | undefined> | undefined
  #detected: DetectedBoard | undefined
  #isClosed = false

  constructor(host: Host, machine: Machine) {
    this.#host = host
    this.#machine = machine
    this.#led = new ActivityLed(machine.root, host.keyValue)
  }

  /** The board; undefined until it is detected and on other machines. */
  get board(): SbcBoard | undefined {
    return this.#detected
  }

  /** Whether the activity LED shows a written level. */
  get isLedHeld(): boolean {
    return this.#led.isHeld
  }

  /** Detects the board, offers its tools, restores the LED after a crash and writes the device profile. Never rejects. */
  async start(): Promise<void> {
    const board = await this.#detectOnce()
    if (!board || this.#isClosed) return
    const host = this.#host
    host.log.info('single-board computer detected', { model: board.fullName })
    host.refresh(`found ${board.fullName}`)
    await this.#releaseLed()
    await writeDeviceProfile(host.dataDir, board).catch((error: unknown) =>
      host.log.warn('device profile not written', { error: errorText(error) }),
    )
  }

  async detect(): Promise<SbcBoard> {
    return this.#reach()
  }

  async hasGpio(): Promise<boolean> {
    return (await this.#reach()).pins.isAvailable()
  }

  /**
   * Throws when the pin cannot be read or written now; does not access it. Returns the name under which the pin is reserved, since the
   * activity LED can also be given by number.
   */
  async check(pin: Pin): Promise<Pin> {
    const board = await this.#reach()
    if (isLed(pin, board)) {
      await this.#led.read()
      return 'led'
    }
    await board.pins.check(pin)
    return pin
  }

  async read(pin: Pin): Promise<PinReading & { readonly source?: 'sysfs' }> {
    const board = await this.#reach()
    return isLed(pin, board) ? { level: await this.#led.read(), direction: 'output', source: 'sysfs' } : board.pins.read(pin)
  }

  /** Sets the level. Returns a remark about the pin, if there is one. */
  async write(pin: Pin, level: Level): Promise<string | undefined> {
    const board = await this.#reach()
    if (!isLed(pin, board)) return board.pins.write(pin, level)
    await this.#led.write(level)
    return undefined
  }

  /** Sets a pin low after blinking. The activity LED gets its trigger back unless it was held before the blinking. */
  async endBlink(pin: Pin, wasLedHeld: boolean): Promise<void> {
    const board = await this.#reach()
    if (!isLed(pin, board)) await board.pins.write(pin, 0)
    else if (wasLedHeld) await this.#led.write(0)
    else await this.#led.release()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#detected?.pins.close()
    if (this.#led.isHeld) await this.#releaseLed()
  }

  async #releaseLed(): Promise<void> {
    await this.#led.release().catch((error: unknown) => this.#host.log.warn('activity LED not restored', { error: errorText(error) }))
  }

  #detectOnce(): Promise<DetectedBoard | undefined> {
    this.#detecting ??= this.#detectNow()
    return this.#detecting
  }

  async #detectNow(): Promise<DetectedBoard | undefined> {
    const board = await detectBoard(this.#machine.root)
    this.#detected = board && { ...board, pins: new HeaderPins(board.model, this.#machine) }
    return this.#detected
  }

  async #reach(): Promise<DetectedBoard> {
    const board = await this.#detectOnce()
    if (this.#isClosed) throw new AppError('unavailable', 'The pins are closed')
    if (!board) throw new AppError('unavailable', 'This machine is not a supported single-board computer (3B, 3B+, 4B, 5, Zero 2W)')
    return board
  }
}

/** The LED's GPIO number means the LED only where it lies beyond the header; otherwise it is a pin of the header. */
const isLed = (pin: Pin, { model }: SbcBoard): pin is 'led' => pin === 'led' || (pin === model.ledGpio && pin > PIN_MAX)
