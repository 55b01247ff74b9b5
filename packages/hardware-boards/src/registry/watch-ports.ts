/** Tells that a serial port may have come or gone: by the kernel's word where it gives it, else by a slow look. */
import { watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { isDevicePath } from '@sluice/hardware'
import type { Clock } from '@sluice/sdk'

/** A board appears in several steps, and its node gets its mode a moment after its name. */
const SETTLE_MS = 200
const POLL_MS = 2000
/** Writes to any device below /dev are told as well. A machine that is full of them is polled instead. */
const USELESS_MAX = 2000
const USELESS_WINDOW_MS = 1000

/** Resolves when `signal` aborts. `onChange` is called at most once in `SETTLE_MS`. */
export async function watchPorts(clock: Clock, onChange: () => void, signal: AbortSignal, folder = '/dev'): Promise<void> {
  await byEvents(clock, onChange, signal, folder)
  await byLooking(clock, onChange, signal, folder)
}

/** Ends when it is aborted, or when watching is not possible or too dear. */
function byEvents(clock: Clock, onChange: () => void, signal: AbortSignal, folder: string): Promise<void> {
  return new Promise((resolve) => {
    let waiting = false
    let useless = 0
    let windowEndsMs = 0
    const settle = async (): Promise<void> => {
      waiting = true
      await clock.sleep(SETTLE_MS, signal)
      waiting = false
      if (!signal.aborted) onChange()
    }
    const tooMany = (): boolean => {
      const now = clock.monotonicMs()
      if (now >= windowEndsMs) {
        useless = 0
        windowEndsMs = now + USELESS_WINDOW_MS
      }
      return ++useless > USELESS_MAX
    }
    try {
      const watcher = watch(folder, { signal, persistent: false }, (event, name) => {
        if (event === 'rename' && name !== null && isDevicePath(`/dev/${name}`, 'serial')) {
          if (!waiting) void settle()
        } else if (tooMany()) watcher.close()
      })
      watcher.on('error', () => watcher.close())
      watcher.on('close', resolve)
    } catch {
      resolve()
    }
  })
}

async function byLooking(clock: Clock, onChange: () => void, signal: AbortSignal, folder: string): Promise<void> {
  let known: string | undefined
  while (!signal.aborted) {
    const names = (await readdir(folder).catch(() => [])).filter((name) => isDevicePath(`/dev/${name}`, 'serial'))
    const now = names.sort().join()
    if (known !== undefined && now !== known) onChange()
    known = now
    await clock.sleep(POLL_MS, signal)
  }
}
