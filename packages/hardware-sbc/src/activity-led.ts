/** The activity LED through sysfs. While Sluice holds it, its trigger is off. Releasing it restores the trigger, also after a crash. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Level } from '@sluice/hardware'
import { AppError, type KeyValue } from '@sluice/sdk'

/** Newer systems call the LED ACT. */
const FOLDERS = ['sys/class/leds/ACT', 'sys/class/leds/led0']
/** The key of the state to restore. It exists while the LED is held. */
const STATE_KEY = 'led'

interface LedState {
  readonly trigger: string
  readonly brightness: string
}

/** Every method throws `unavailable` when the board has no such LED, and `forbidden` with the cure when it may not be written. */
export class ActivityLed {
  readonly #root: string
  readonly #keyValue: KeyValue
  #isHeld = false

  constructor(root: string, keyValue: KeyValue) {
    this.#root = root
    this.#keyValue = keyValue
  }

  /** Whether the LED shows a written level instead of its trigger. */
  get isHeld(): boolean {
    return this.#isHeld
  }

  async read(): Promise<Level> {
    const brightness = await readFile(join(await ledFolder(this.#root), 'brightness'), 'utf8')
    return Number.parseInt(brightness, 10) > 0 ? 1 : 0
  }

  /** Sets the level. The first write switches the trigger off. */
  async write(level: Level): Promise<void> {
    await this.#hold()
    await writeLed(join(await ledFolder(this.#root), 'brightness'), String(level))
  }

  /** Restores the trigger and brightness from before the first write. Idempotent. */
  async release(): Promise<void> {
    const before = (await this.#keyValue.get(STATE_KEY)) as LedState | undefined
    this.#isHeld = false
    if (before === undefined) return
    const folder = await ledFolder(this.#root)
    await writeLed(join(folder, 'brightness'), before.brightness)
    await writeLed(join(folder, 'trigger'), before.trigger)
    await this.#keyValue.delete(STATE_KEY)
  }

  async #hold(): Promise<void> {
    if (this.#isHeld) return
    const folder = await ledFolder(this.#root)
    const trigger = /\[([^[\]]{1,64})\]/.exec(await readFile(join(folder, 'trigger'), 'utf8'))?.[1] ?? 'none'
    // A state that a crash left behind is the one to restore; the current state is that of the crashed process.
    const isFirst = (await this.#keyValue.get(STATE_KEY)) === undefined
    if (isFirst) {
      const brightness = (await readFile(join(folder, 'brightness'), 'utf8')).trim()
      await this.#keyValue.set(STATE_KEY, { trigger, brightness } satisfies LedState)
    }
    try {
      await writeLed(join(folder, 'trigger'), 'none')
    } catch (error) {
      if (isFirst) await this.#keyValue.delete(STATE_KEY)
      throw error
    }
    this.#isHeld = true
  }
}

/** Returns the LED's folder in sysfs. Throws `unavailable` when the machine has no activity LED. */
export async function ledFolder(root: string): Promise<string> {
  for (const folder of FOLDERS) {
    const path = join(root, folder)
    if ((await readFile(join(path, 'trigger')).catch(() => undefined)) !== undefined) return path
  }
  throw new AppError('unavailable', 'This machine has no activity LED under /sys/class/leds')
}

async function writeLed(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new AppError('forbidden', `No permission to write ${file}: give the group gpio write access with a udev rule, see docs/sbc.md`)
    throw new AppError('unavailable', `${file} cannot be written: ${message}`, { cause: error })
  }
}
