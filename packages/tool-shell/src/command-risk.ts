/** Rates a command by its possible effects at the time of the call, and tells whether it may read text of others. */
import { lstatSync, realpathSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { hasFilesOfOthers, isWithin, leadsToFilesOfOthers } from '@sluice/kit'
import type { Risk, Workspace } from '@sluice/sdk'
import { readOnlyPaths, readsWorkingFolder } from './read-only-commands.ts'
import { type Segment, splitCommand, type Word } from './split-command.ts'

/** Where commands work, and the folders outside of it that its links may lead to. */
type Places = Pick<Workspace, 'root' | 'shown'>

/**
 * Returns `read` if every program of the command only reads: its options are known to be harmless, and its paths exist
 * inside the workspace with no link on the way but the one to the attachments of the caller. Returns `execute` for every other command, including one that cannot be
 * parsed. Never throws.
 */
export function commandRisk(command: string, places: Places): Risk {
  return pathsOf(command, places) === undefined ? 'execute' : 'read'
}

/**
 * Returns true if the command may read files of others: it can read a path that it does not spell out, or one of its paths leads to
 * such files. Returns false while the workspace has none.
 */
export const readsFilesOfOthers = (command: string, places: Places): boolean =>
  hasFilesOfOthers(places.root) && (pathsOf(command, places)?.some((path) => leadsToFilesOfOthers(places.root, path)) ?? true)

/** Returns every path that a command with the risk `read` reads; undefined for any other command. */
function pathsOf(command: string, places: Places): readonly string[] | undefined {
  let segments: Segment[]
  try {
    segments = splitCommand(command)
  } catch {
    return undefined
  }
  const paths = segments.map((segment) => pathsOfSegment(segment, places))
  const known = paths.filter((list) => list !== undefined)
  return known.length > 0 && known.length === paths.length ? known.flat() : undefined
}

function pathsOfSegment([program, ...args]: Segment, places: Places): readonly string[] | undefined {
  if (!program?.plain || args.some(isExpanded)) return undefined
  const texts = args.map(({ text }) => text)
  const paths = readOnlyPaths(program.text, texts)?.map((at) => texts[at] ?? '')
  if (!paths?.every((path) => isPlainlyInside(path, places))) return undefined
  return paths.length === 0 && readsWorkingFolder(program.text, texts) ? ['.'] : paths
}

/** True if the shell replaces the word by others, which are not known yet. */
const isExpanded = ({ text, patternAt, plain }: Word): boolean => patternAt >= 0 || (plain && /^~|[=:]~/.test(text))

/** True for a directory, or a file with a single name, inside the workspace and without a link on the way to it, or in a shown folder. */
function isPlainlyInside(text: string, places: Places): boolean {
  const { root } = places
  const path = resolve(root, text)
  if (text.split('/').includes('..') || !isWithin(path, root)) return false
  try {
    const status = lstatSync(path)
    if (!status.isDirectory() && !(status.isFile() && status.nlink === 1)) return false
    const real = realpathSync(path)
    return real === resolve(realpathSync(root), relative(root, path)) || (places.shown ?? []).some((folder) => isWithin(real, folder))
  } catch {
    return false // The path is missing, or is being changed at this moment.
  }
}
