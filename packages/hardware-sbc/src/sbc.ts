/** The computer Sluice runs on, once it is known to be a supported board: its pins and its activity LED as one. */
import type { Gpio, Level } from '@sluice/hardware'
import { AppError, errorText, type Host, type NativeGpio } from '@sluice/sdk'
import { type ActivityLed, createActivityLed } from './activity-led.ts'
import { detectBoard, type SbcBoard } from './detect-board.ts'
import { writeDeviceProfile } from './device-profile.ts'
import { createHeaderPins, type HeaderPins, type PinReading } from './header-pins.ts'
import { PIN_MAX } from './pin-rules.ts'

/** What of the machine a test replaces. */
export interface Outside {
  /** Where `/proc`, `/sys` and `/dev` are looked for. */
  readonly root: string
  readonly openGpio: () => Promise<Gpio>
}

/** By BCM number, the activity LED also by its name. */
export type Pin = number | 'led'

/** All that reach a pin throw `unavailable` on another machine. */
export interface Sbc {
  /** What was found so far; undefined: nothing yet, or another machine. */
  readonly board: SbcBoard | undefined
  /** Looks what machine this is, tells the daemon, writes the profile. Never rejects. */
  start(): Promise<void>
  detect(): Promise<SbcBoard>
  hasGpio(): Promise<boolean>
  /** By the one name under which it is reserved. Throws if the pin can be neither read nor written just now; touches nothing. */
  check(pin: Pin): Promise<Pin>
  read(pin: Pin): Promise<PinReading & { readonly source?: 'sysfs' }>
  /** Gives a remark on the pin, if there is one. */
  write(pin: Pin, level: Level): Promise<string | undefined>
  /** Low; the LED goes back to what showed on it if `write` alone had not taken it before. */
  rest(pin: Pin, wasTaken: boolean): Promise<void>
  /** Whether the LED shows what was written. */
  readonly isLedTaken: boolean
  close(): Promise<void>
}

interface Reached extends SbcBoard {
  readonly pins: HeaderPins
}

export function createSbc(host: Host, { root, openGpio }: Outside): Sbc {
  const led: ActivityLed = createActivityLed(root, host.keyValue)
  let found: Reached | undefined
  let looking: Promise<Reached | undefined> | undefined
  let isClosed = false

  const look = async (): Promise<Reached | undefined> => {
    const board = await detectBoard(root)
    found = board && { ...board, pins: createHeaderPins({ model: board.model, root, openGpio }) }
    return found
  }

  const reach = async (): Promise<Reached> => {
    looking ??= look()
    const reached = await looking
    if (isClosed) throw new AppError('unavailable', 'The pins are closed')
    if (!reached) throw new AppError('unavailable', 'This machine is no supported single-board computer (3B, 3B+, 4B, 5, Zero 2W)')
    return reached
  }

  /** Its number is one beyond the header; where it is not, the number is the header's. */
  const isLed = (pin: Pin, { model }: Reached): pin is 'led' => pin === 'led' || (pin === model.ledGpio && pin > PIN_MAX)

  return {
    get board() {
      return found
    },
    get isLedTaken() {
      return led.isTaken
    },
    async start() {
      looking ??= look()
      const board = await looking
      if (!board || isClosed) return
      host.log.info('this machine is a single-board computer', { model: board.fullName })
      host.refresh(`found ${board.fullName}`)
      const failed = (what: string) => (error: unknown) => host.log.warn(what, { error: errorText(error) })
      await led.release().catch(failed('the activity LED was not given back'))
      await writeDeviceProfile(host.dataDir, board).catch(failed('the device profile was not written'))
    },
    detect: reach,
    hasGpio: async () => (await reach()).pins.isThere(),
    async check(pin) {
      const board = await reach()
      const isTheLed = isLed(pin, board)
      if (isTheLed) await led.read()
      else await board.pins.check(pin)
      return isTheLed ? 'led' : pin
    },
    async read(pin) {
      const board = await reach()
      return isLed(pin, board) ? { level: await led.read(), direction: 'output', source: 'sysfs' } : board.pins.read(pin)
    },
    async write(pin, level) {
      const board = await reach()
      if (!isLed(pin, board)) return board.pins.write(pin, level)
      await led.write(level)
      return undefined
    },
    async rest(pin, wasTaken) {
      const board = await reach()
      if (!isLed(pin, board)) await board.pins.write(pin, 0)
      else if (wasTaken) await led.write(0)
      else await led.release()
    },
    async close() {
      isClosed = true
      await found?.pins.close()
      if (led.isTaken)
        await led.release().catch((error: unknown) => host.log.warn('the activity LED was not given back', { error: errorText(error) }))
    },
  }
}

/** For boards that are configured with the transport `native`. */
export const nativeGpio = (sbc: Sbc): NativeGpio => ({
  read: async (pin) => (await sbc.read(pin)).level,
  write: async (pin, value) => {
    await sbc.write(pin, value)
  },
})
