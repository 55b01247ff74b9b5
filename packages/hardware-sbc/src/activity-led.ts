/** The activity LED, by sysfs: while it is ours its trigger rests, and comes back afterwards, also after a crash. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Level } from '@sluice/hardware'
import { AppError, type KeyValue } from '@sluice/sdk'

const FOLDERS = ['sys/class/leds/ACT', 'sys/class/leds/led0']
const KEPT = 'led'

/** All throw `unavailable` where there is no such LED, and `forbidden` with what to do where it may not be written. */
export interface ActivityLed {
  read(): Promise<Level>
  /** Takes it, if it is not taken yet. */
  write(level: Level): Promise<void>
  readonly isTaken: boolean
  /** Gives it back to its trigger. Idempotent. */
  release(): Promise<void>
}

interface Before {
  readonly trigger: string
  readonly brightness: string
}

export function createActivityLed(root: string, keyValue: KeyValue): ActivityLed {
  let isTaken = false

  const take = async (): Promise<void> => {
    if (isTaken) return
    const folder = await ledFolder(root)
    const trigger = /\[([^[\]]{1,64})\]/.exec(await readFile(join(folder, 'trigger'), 'utf8'))?.[1] ?? 'none'
    // what a crash left taken is not how it was before
    const isFresh = (await keyValue.get(KEPT)) === undefined
    if (isFresh) {
      const brightness = (await readFile(join(folder, 'brightness'), 'utf8')).trim()
      await keyValue.set(KEPT, { trigger, brightness } satisfies Before)
    }
    try {
      await put(join(folder, 'trigger'), 'none')
    } catch (error) {
      if (isFresh) await keyValue.delete(KEPT)
      throw error
    }
    isTaken = true
  }

  return {
    get isTaken() {
      return isTaken
    },
    async read() {
      const brightness = await readFile(join(await ledFolder(root), 'brightness'), 'utf8')
      return Number.parseInt(brightness, 10) > 0 ? 1 : 0
    },
    async write(level) {
      await take()
      await put(join(await ledFolder(root), 'brightness'), String(level))
    },
    async release() {
      const before = (await keyValue.get(KEPT)) as Before | undefined
      isTaken = false
      if (before === undefined) return
      const folder = await ledFolder(root)
      await put(join(folder, 'brightness'), before.brightness)
      await put(join(folder, 'trigger'), before.trigger)
      await keyValue.delete(KEPT)
    },
  }
}

/** Newer systems call it ACT. */
export async function ledFolder(root: string): Promise<string> {
  for (const folder of FOLDERS) {
    const path = join(root, folder)
    if ((await readFile(join(path, 'trigger')).catch(() => undefined)) !== undefined) return path
  }
  throw new AppError('unavailable', 'This machine shows no activity LED under /sys/class/leds')
}

async function put(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new AppError('forbidden', `${file} may not be written: give the group gpio write access by a udev rule, see docs/sbc.md`)
    throw new AppError('unavailable', `${file} cannot be written: ${message}`, { cause: error })
  }
}
