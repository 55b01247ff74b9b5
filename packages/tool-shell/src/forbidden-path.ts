/** Finds a path that the policy forbids in the words of a command. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { isWithin } from '@sluice/kit'
import type { Word } from './split-command.ts'

export interface PathRules {
  /** The workspace, in which the command starts. */
  readonly root: string
  /** The value of `[security.policy] forbidden_paths`. */
  readonly forbidden: readonly string[]
  /** Further folders that a forbidden folder above them does not forbid, such as the folders of skills. */
  readonly shown?: readonly string[]
}

/**
 * Returns the first word that names a forbidden path or a path below it, resolved from each of `folders`, in which the
 * command may run. A word with a pattern counts as every path that its beginning could become. A forbidden folder that
 * contains the workspace, or a shown folder, does not forbid that folder itself. /dev/null is always allowed.
 */
export function forbiddenMention(
  words: readonly Word[],
  folders: readonly string[],
  { root, forbidden, shown = [] }: PathRules,
): string | undefined {
  const banned = forbidden.map((path) => resolve(root, expandHome(path, homedir())))
  const isBanned = (path: string, isOpen: boolean) =>
    path !== '/dev/null' &&
    banned.some((ban) => {
      if ([root, ...shown].some((folder) => ban !== folder && isWithin(folder, ban) && isWithin(path, folder))) return false
      return isWithin(path, ban) || (isOpen && ban.startsWith(path))
    })
  // `~` is the workspace for the shell and the daemon's home folder in the policy, so both readings are checked.
  const isNamed = (text: string, isOpen: boolean) =>
    [homedir(), root].some((home) => folders.some((folder) => isBanned(resolve(folder, expandHome(text, home)), isOpen)))

  return words.find(({ text, patternAt, plain }) => {
    if (plain && /^~[^/]/.test(text)) return true
    if (patternAt < 0) return pathsIn(text).some((path) => path !== '' && isNamed(path, false))
    const leavesByPattern = forbidden.length > 0 && text.includes('..', patternAt)
    return leavesByPattern || pathsIn(text.slice(0, patternAt)).some((path) => isNamed(path, true))
  })?.text
}

/** Returns the parts of a word that may be a path: the word itself, and the parts after an option's letter or a separator. */
export function pathsIn(text: string): string[] {
  const behindOption = /^-[^/~]*([/~].*)$/s.exec(text)?.[1]
  return [text, ...text.split(/[\s=:,@'"()]+/), ...(behindOption ? [behindOption] : [])]
}

/** Replaces a leading `~` by the home folder and changes nothing else. */
export const expandHome = (path: string, home: string): string => (path === '~' || path.startsWith('~/') ? join(home, path.slice(1)) : path)
