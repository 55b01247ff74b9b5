/** Looks again whenever something was plugged in or out, by the kernel's notices of USB device nodes; nothing runs in between. */
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { signalScope } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** From the first notice: further nodes of a device and their permissions follow. */
const QUIET_MS = 500
/** Between looks, where there is nothing that could be watched. */
const LOOK_MS = 10_000
/** Of USB buses. */
const FOLDERS_MAX = 64

export interface Watching {
  /** Awaited before the next look; may not reject. */
  readonly look: () => Promise<void>
  readonly signal: AbortSignal
}

/**
 * Calls `look` at once and after each change, until `signal` aborts; resolves then. Only `/dev/bus/usb` is watched: notices of
 * `/dev` itself come with every write to any terminal and to `/dev/null`.
 */
export async function watchDevices(clock: Pick<Clock, 'sleep'>, dev: string, { look, signal }: Watching): Promise<void> {
  const usb = join(dev, 'bus/usb')
  while (!signal.aborted) {
    const buses = (await readdir(usb).catch(() => [])).slice(0, FOLDERS_MAX).map((bus) => join(usb, bus))
    const notice = new AbortController()
    const watchers = [usb, ...buses].flatMap((folder) => watching(folder, () => notice.abort()))
    try {
      // With the watchers set: what comes after it is noticed, what came before it is seen.
      await look()
      using ended = signalScope([signal, notice.signal])
      if (watchers.length === 0) await clock.sleep(LOOK_MS, ended.signal)
      else {
        await aborted(ended.signal)
        await clock.sleep(QUIET_MS, signal)
      }
    } finally {
      for (const watcher of watchers) watcher.close()
    }
  }
}

function watching(folder: string, onNotice: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, (event) => event === 'rename' && onNotice())
    // A bus that went away.
    watcher.on('error', onNotice)
    return [watcher]
  } catch {
    return []
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
