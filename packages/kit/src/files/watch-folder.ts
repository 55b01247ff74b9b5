/** Watches a folder and the folders directly inside it. It listens where the system reports changes, and compares fingerprints where it does not. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@sluice/sdk'
import { mapConcurrently } from '../queue/batches.ts'
import { signalScope } from '../time/signal-scope.ts'
import { FolderListener } from './folder-listener.ts'

/** A change is complete once the folder has been quiet for this long. */
const QUIET_MS = 200
/** A folder that is never quiet is read after this many waits. */
const QUIET_WAITS_MAX = 20
/** The poll interval for changes that the system does not report, as on a network share or beyond its limit of watches. */
const POLL_MS = 10_000
/** The interval for a folder that does not exist yet, which costs next to nothing to check. */
const ABSENT_POLL_MS = 500
const STATS_AT_ONCE = 16

export interface WatchFolderOptions {
  readonly folder: string
  /** The names of the files in each inner folder that are compared where the system reports no changes. */
  readonly files: readonly string[]
  readonly clock: Clock
  /** Ends the watch. */
  readonly signal: AbortSignal
  /** Called when a change is noticed, before the folder is quiet; must not throw. */
  onNotice?(): void
  /** Called one at a time; a change during a call causes another one. Must not reject. */
  onChange(): Promise<void>
}

export interface WatchedFolder {
  /** Resolves once every change is noticed. */
  readonly listening: Promise<unknown>
  /** Resolves after the signal has aborted. */
  readonly ended: Promise<void>
}

/** The watch does not keep the process alive. */
export function watchFolder(options: WatchFolderOptions): WatchedFolder {
  const listening = FolderListener.open(options.folder)
  return { listening, ended: watch(options, listening) }
}

async function watch(options: WatchFolderOptions, listening: Promise<FolderListener>): Promise<void> {
  const { folder, files, clock, signal, onChange } = options
  let listener = await listening
  reportFirstChange(listener, options)
  let known = await fingerprint(folder, files, listener)
  while (!signal.aborted) {
    using rest = signalScope([signal, listener.changed])
    await clock.sleep(listener.isPresent ? POLL_MS : ABSENT_POLL_MS, rest.signal)
    if (signal.aborted || (!listener.changed.aborted && (await fingerprint(folder, files, listener)) === known)) continue
    await untilQuiet(listener, clock, signal)
    // Inner folders may have come and gone. The new listener sees all later changes; `onChange` reads the earlier ones.
    listener.close()
    listener = await FolderListener.open(folder)
    reportFirstChange(listener, options)
    known = await fingerprint(folder, files, listener)
    if (!signal.aborted) await onChange()
  }
  listener.close()
}

function reportFirstChange({ changed }: FolderListener, options: WatchFolderOptions): void {
  if (changed.aborted) options.onNotice?.()
  else changed.addEventListener('abort', () => options.onNotice?.(), { once: true })
}

async function untilQuiet(listener: FolderListener, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let waits = 0; waits < QUIET_WAITS_MAX && !signal.aborted; waits++) {
    const { changeCount } = listener
    await clock.sleep(QUIET_MS, signal)
    if (listener.changeCount === changeCount) return
  }
}

/** Returns a text that changes with the folder. With a complete listener it covers only the folder itself, else the files of every inner folder. */
async function fingerprint(folder: string, files: readonly string[], { isComplete }: FolderListener): Promise<string> {
  const own = await statText(folder)
  if (isComplete) return own
  const names = await readdir(folder).catch(() => [])
  const parts = await mapConcurrently(names.sort(), STATS_AT_ONCE, async (name) => {
    const states = files.map((file) => statText(join(folder, name, file)))
    return [name, ...(await Promise.all(states))].join()
  })
  return [own, ...parts].join('\n')
}

/** Returns a text that changes when the file changes or is replaced. */
async function statText(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}
