/** Whether the words of a command name a path the policy forbids. */
import { homedir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import type { Word } from './split-command.ts'

export interface PathRules {
  /** The workspace, where the command starts. */
  readonly root: string
  /** `[security.policy] forbidden_paths`. */
  readonly forbidden: readonly string[]
}

/**
 * The first word that names a forbidden path or something below it, from any of the `folders` the command may be in by
 * then. A word with a pattern is taken for everything its beginning could become. As in the workspace, a forbidden path
 * that holds the whole workspace says nothing about its inside; /dev/null is always fine.
 */
export function forbiddenMention(words: readonly Word[], folders: readonly string[], { root, forbidden }: PathRules): string | undefined {
  const banned = forbidden.map((path) => resolve(root, expandHome(path, homedir())))
  const isBanned = (path: string, isOpen: boolean) =>
    path !== '/dev/null' &&
    banned.some((ban) => {
      if (ban !== root && isWithin(root, ban) && isWithin(path, root)) return false
      return isWithin(path, ban) || (isOpen && ban.startsWith(path))
    })
  // `~` is the workspace for the shell and the daemon's home for a reader of the policy: both readings count
  const isNamed = (text: string, isOpen: boolean) =>
    [homedir(), root].some((home) => folders.some((folder) => isBanned(resolve(folder, expandHome(text, home)), isOpen)))

  return words.find(({ text, patternAt, plain }) => {
    if (plain && /^~[^/]/.test(text)) return true
    if (patternAt < 0) return pathsIn(text).some((path) => path !== '' && isNamed(path, false))
    const leavesByPattern = forbidden.length > 0 && text.includes('..', patternAt)
    return leavesByPattern || pathsIn(text.slice(0, patternAt)).some((path) => isNamed(path, true))
  })?.text
}

/** The texts inside a word that may be a path: itself, and what stands behind an option's letter or a separator. */
export function pathsIn(text: string): string[] {
  const behindOption = /^-[^/~]*([/~].*)$/s.exec(text)?.[1]
  return [text, ...text.split(/[\s=:,@'"()]+/), ...(behindOption ? [behindOption] : [])]
}

/** `path` with a leading `~` replaced; nothing else is. */
export const expandHome = (path: string, home: string): string => (path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : path)

/** True if `path` is `folder` or below it; both absolute and normal. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
