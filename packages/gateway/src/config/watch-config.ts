/** Notices changes of the configuration file, however they are made: in place, by renaming, by a link that leads elsewhere. */
import { watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { type Clock, systemClock } from '@sluice/sdk'

/** A write is over once the file has looked the same for so long. */
const QUIET_MS = 100
/** A file that never comes to rest is read after so many looks. */
const LOOKS_MAX = 20
/** What the folder's events miss (a link further up, a network share) is found by then. */
const POLL_MS = 2000

export interface WatchOptions {
  readonly file: string
  /** What is in force; without it, what the file holds when watching begins. */
  readonly text?: string
  readonly clock?: Clock
  /** Ends the watch. */
  readonly signal: AbortSignal
  /** Told the file's text when that has changed, an empty one when there is no file. One call at a time; must not throw. */
  onChange(text: string): void | Promise<void>
}

/** Returns at once; nothing of it keeps the process alive. A file that cannot be read counts as unchanged. */
export function watchConfig({ file, text, clock = systemClock, signal, onChange }: WatchOptions): void {
  let hasEvent = false
  let nap = new AbortController()
  const notice = () => {
    hasEvent = true
    nap.abort()
  }

  const run = async () => {
    let isFollowing = false
    let known = text
    let seen: string | undefined
    while (!signal.aborted) {
      // Made before the look, so that no event falls between the two.
      nap = new AbortController()
      isFollowing ||= followFolder(file, { signal, notice, lost: () => (isFollowing = false) })
      const now = await identity(file)
      if (now === seen && !hasEvent) {
        await clock.sleep(POLL_MS, AbortSignal.any([signal, nap.signal]))
        continue
      }
      hasEvent = false
      seen = known === undefined ? now : await settled(file, now, clock, signal)
      const found = await readText(file)
      if (found === undefined || signal.aborted) continue
      const isChange = known !== undefined && found !== known
      known = found
      if (isChange) await onChange(found)
    }
  }
  void run()
}

interface Follower {
  readonly signal: AbortSignal
  notice(): void
  lost(): void
}

/**
 * Hears of the file itself, and of the `..data` link by which a mounted volume swaps all its files at once. False if there
 * is no such folder yet or no more watches are to be had: then looking now and then has to do.
 */
function followFolder(file: string, { signal, notice, lost }: Follower): boolean {
  try {
    watch(dirname(file), { persistent: false, signal })
      .on('change', (_, name) => {
        if (name === null || name === basename(file) || String(name).startsWith('..')) notice()
      })
      .on('error', lost)
    return true
  } catch {
    return false
  }
}

/** Changes whenever the file does, or another takes its place; links are followed. */
async function identity(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join()
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown'
  }
}

async function settled(file: string, first: string, clock: Clock, signal: AbortSignal): Promise<string> {
  let before = first
  for (let looks = 0; looks < LOOKS_MAX && !signal.aborted; looks++) {
    await clock.sleep(QUIET_MS, signal)
    const now = await identity(file)
    if (now === before) break
    before = now
  }
  return before
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : undefined
  }
}
