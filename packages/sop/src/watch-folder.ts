/** Notices changes of the folder of procedures: in itself, and in the folders in it. */

import { signalScope } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'
import { FolderEar } from './folder-ear.ts'
import { folderMark } from './folder-mark.ts'

/** A change is over once nothing has been heard for so long. */
const QUIET_MS = 200
/** What never comes to rest is read after so many looks. */
const LOOKS_MAX = 20
/** What nobody tells of (a network share, no more watches to be had) is found by then. */
const POLL_MS = 10_000
/** A folder that is not there yet: to look costs next to nothing. */
const ABSENT_POLL_MS = 500

export interface WatchFolderOptions {
  readonly folder: string
  readonly clock: Clock
  /** Ends the watch. */
  readonly signal: AbortSignal
  /** Called when something is noticed, before it is read; must not throw. */
  onNotice?(): void
  /** One call at a time. A change while it runs is followed by another. Must not reject. */
  onChange(): Promise<void>
}

export interface WatchedFolder {
  /** From then on no change is missed. */
  readonly listening: Promise<unknown>
  /** Resolves once the signal has aborted. */
  readonly ended: Promise<void>
}

/** Nothing of it keeps the process alive. */
export function watchFolder(options: WatchFolderOptions): WatchedFolder {
  const listening = FolderEar.to(options.folder)
  return { listening, ended: watch(options, listening) }
}

async function watch(options: WatchFolderOptions, listening: Promise<FolderEar>): Promise<void> {
  const { folder, clock, signal, onChange } = options
  const listen = (to: FolderEar): FolderEar => {
    if (to.heard.aborted) options.onNotice?.()
    else to.heard.addEventListener('abort', () => options.onNotice?.(), { once: true })
    return to
  }
  let ear = listen(await listening)
  let known = await folderMark(folder, ear)
  while (!signal.aborted) {
    using rest = signalScope([signal, ear.heard])
    await clock.sleep(ear.isThere ? POLL_MS : ABSENT_POLL_MS, rest.signal)
    if (signal.aborted || (!ear.heard.aborted && (await folderMark(folder, ear)) === known)) continue
    for (let looks = 0; looks < LOOKS_MAX && !signal.aborted; looks++) {
      const { count } = ear
      await clock.sleep(QUIET_MS, signal)
      if (ear.count === count) break
    }
    // Folders may have come and gone. What happens from here on is heard anew; what has happened is about to be read.
    ear.close()
    ear = listen(await FolderEar.to(folder))
    known = await folderMark(folder, ear)
    if (!signal.aborted) await onChange()
  }
  ear.close()
}
