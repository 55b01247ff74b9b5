/** Notices when a serial port may have come or gone: by file system events where possible, by polling otherwise. */
import { watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isDevicePath } from '@sluice/hardware'
import type { Clock } from '@sluice/sdk'

/** A board appears in several steps, and its device file gets its permissions a moment after its name. */
const SETTLE_MS = 200
const POLL_MS = 2000
/** The watcher also reports writes to any device below /dev. A machine with very many of them is polled instead. */
const UNRELATED_MAX = 2000
const UNRELATED_WINDOW_MS = 1000

/** Resolves when `signal` aborts. Calls `onChange` at most once in `SETTLE_MS`. */
export async function watchPorts(clock: Clock, onChange: () => void, signal: AbortSignal, folder = '/dev'): Promise<void> {
  await byEvents(clock, onChange, signal, folder)
  await byPolling(clock, onChange, signal, folder)
}

/** Resolves when `signal` aborts, and when watching is not possible or too expensive. */
function byEvents(clock: Clock, onChange: () => void, signal: AbortSignal, folder: string): Promise<void> {
  return new Promise((resolve) => {
    let isSettling = false
    let unrelated = 0
    let windowEndsMs = 0
    const settle = async (): Promise<void> => {
      isSettling = true
      await clock.sleep(SETTLE_MS, signal)
      isSettling = false
      if (!signal.aborted) onChange()
    }
    const tooMany = (): boolean => {
      const now = clock.monotonicMs()
      if (now >= windowEndsMs) {
        unrelated = 0
        windowEndsMs = now + UNRELATED_WINDOW_MS
      }
      return ++unrelated > UNRELATED_MAX
    }
    try {
      const watcher = watch(folder, { signal, persistent: false }, (event, name) => {
        if (event === 'rename' && name !== null && isDevicePath(`/dev/${name}`, 'serial')) {
          if (!isSettling) void settle()
        } else if (tooMany()) watcher.close()
      })
      watcher.on('error', () => watcher.close())
      watcher.on('close', resolve)
    } catch {
      resolve()
    }
  })
}

async function byPolling(clock: Clock, onChange: () => void, signal: AbortSignal, folder: string): Promise<void> {
  let known: string | undefined
  while (!signal.aborted) {
    const names = (await readdir(folder).catch(() => [])).filter((name) => isDevicePath(`/dev/${name}`, 'serial'))
    const now = names.sort().join()
    if (known !== undefined && now !== known) onChange()
    known = now
    await clock.sleep(POLL_MS, signal)
  }
}
