/** Watches the configuration file for writes, renames and changed links. */
import { watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { signalScope, systemClock } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** A write has ended when the file has not changed for this time. */
const QUIET_MS = 100
/** A file that keeps changing is read after this number of checks. */
const LOOKS_MAX = 20
/** Polling finds changes that the events of the folder miss, such as a changed parent link or a change on a network share. */
const POLL_MS = 2000
/** A file that lost text is applied after this time, because editors and copies truncate a file before they write it. */
export const LOSS_HOLD_MS = 5000

export interface WatchOptions {
  readonly file: string
  /** The text in force. Without it, the text of the file when watching begins. */
  readonly text?: string
  readonly clock?: Clock
  /** Ends the watch. */
  readonly signal: AbortSignal
  /**
   * Receives the file's changed text, empty if the file does not exist. One call at a time; must not throw. A file that became
   * empty, disappeared, lost a section or was cut short is passed on after it has stayed so for `LOSS_HOLD_MS`.
   */
  onChange(text: string): void | Promise<void>
  /** Called when such a file is first seen; `lost` describes the lost text. Must not throw. */
  onLoss?(lost: string): void
}

/** Returns at once and does not keep the process alive. A file that cannot be read counts as unchanged. */
export function watchConfig({ file, text, clock = systemClock, signal, onChange, onLoss }: WatchOptions): void {
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
    let held: { readonly text: string; readonly untilMs: number } | undefined
    while (!signal.aborted) {
      // Created before the file is checked, so that no event in between is missed.
      nap = new AbortController()
      isFollowing ||= followFolder(file, { signal, notice, lost: () => (isFollowing = false) })
      const now = await identity(file)
      const heldMs = held ? held.untilMs - clock.nowMs() : POLL_MS
      if (now === seen && !hasEvent && heldMs > 0) {
        using rest = signalScope([signal, nap.signal])
        await clock.sleep(Math.min(POLL_MS, heldMs), rest.signal)
        continue
      }
      hasEvent = false
      seen = known === undefined ? now : await settled(file, now, clock, signal)
      const found = await readText(file)
      if (found === undefined || signal.aborted) continue
      const lost = known === undefined ? undefined : lossOf(known, found)
      if (lost !== undefined) {
        if (!held) onLoss?.(lost)
        if (held?.text !== found) held = { text: found, untilMs: clock.nowMs() + LOSS_HOLD_MS }
        if (clock.nowMs() < held.untilMs) continue
      }
      held = undefined
      const isChange = known !== undefined && found !== known
      known = found
      if (isChange) await onChange(found)
    }
  }
  void run()
}

const HEADER = /^[ \t]*\[\[?([^[\]#\n]+)\]/gm
const sectionsIn = (text: string): Set<string> => new Set([...text.matchAll(HEADER)].map(([, name = '']) => name.trim()))

/** Describes the text that a change lost and that a write in progress could bring back; undefined when nothing was lost. */
function lossOf(before: string, after: string): string | undefined {
  if (before.trim() !== '' && after.trim() === '') return 'all of its text'
  const kept = sectionsIn(after)
  const missing = [...sectionsIn(before)].filter((name) => !kept.has(name))
  if (missing.length > 0) return missing.map((name) => `[${name}]`).join(', ')
  return after.length < before.length && before.startsWith(after) ? 'its end' : undefined
}

interface Follower {
  readonly signal: AbortSignal
  notice(): void
  lost(): void
}

/**
 * Watches the folder for the file itself and for the `..data` link by which a mounted volume swaps all its files at once.
 * Returns false if the folder does not exist yet or the system has no file watches left; polling finds the change then.
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

/** Returns a text that changes when the file changes or is replaced. Follows links. */
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
