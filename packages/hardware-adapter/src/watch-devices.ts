/** Searches for devices again whenever a USB device is plugged in or out, without polling where the kernel can notify. */
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { signalScope } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** The wait after the first notification, because more nodes of the device and their permissions follow. */
const SETTLE_MS = 500
/** The time between searches on systems that cannot notify. */
const POLL_MS = 10_000
/** The largest number of USB buses to watch. */
const BUSES_MAX = 64

/**
 * Calls `search` at once and after each change until `signal` aborts, then resolves. `search` is awaited and must not reject. Watches
 * only `/dev/bus/usb`, because `/dev` itself changes with every write to a terminal or to `/dev/null`.
 */
export async function watchDevices(clock: Clock, dev: string, search: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const usb = join(dev, 'bus/usb')
  while (!signal.aborted) {
    const buses = (await readdir(usb).catch(() => [])).slice(0, BUSES_MAX).map((bus) => join(usb, bus))
    const changed = new AbortController()
    const watchers = [usb, ...buses].flatMap((folder) => watchFolder(folder, () => changed.abort()))
    try {
      // The watchers are set first, so that no change between the search and the wait is missed.
      await search()
      using ended = signalScope([signal, changed.signal])
      if (watchers.length === 0) await clock.sleep(POLL_MS, ended.signal)
      else {
        await aborted(ended.signal)
        await clock.sleep(SETTLE_MS, signal)
      }
    } finally {
      for (const watcher of watchers) watcher.close()
    }
  }
}

/** Returns no watcher when the folder does not exist or the system has no watches left. */
function watchFolder(folder: string, onChange: () => void): FSWatcher[] {
  try {
    const watcher = watch(folder, { persistent: false }, (event) => event === 'rename' && onChange())
    // The folder of a bus disappears with the bus.
    watcher.on('error', onChange)
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
