/** Rates a command by its possible effects at the time of the call, and tells whether it may read text of others. */
import { lstatSync, realpathSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { hasFilesOfOthers, leadsToFilesOfOthers } from '@sluice/kit'
import type { Risk } from '@sluice/sdk'
import { isWithin } from './forbidden-path.ts'
import { readOnlyPaths, readsWorkingFolder } from './read-only-commands.ts'
import { type Segment, splitCommand, type Word } from './split-command.ts'

/**
 * Returns `read` if every program of the command only reads: its options are known to be harmless, and its paths exist
 * inside the workspace with no link on the way. Returns `execute` for every other command, including one that cannot be
 * parsed. Never throws.
 */
export function commandRisk(command: string, root: string): Risk {
  return pathsOf(command, root) === undefined ? 'execute' : 'read'
}

/**
 * Returns true if the command may read files of others: it can read a path that it does not spell out, or one of its paths leads to
 * such files. Returns false while the workspace has none.
 */
export const readsFilesOfOthers = (command: string, root: string): boolean =>
  hasFilesOfOthers(root) && (pathsOf(command, root)?.some((path) => leadsToFilesOfOthers(root, path)) ?? true)

/** Returns every path that a command with the risk `read` reads; undefined for any other command. */
function pathsOf(command: string, root: string): readonly string[] | undefined {
  let segments: Segment[]
  try {
    segments = splitCommand(command)
  } catch {
    return undefined
  }
  const paths = segments.map((segment) => pathsOfSegment(segment, root))
  const known = paths.filter((list) => list !== undefined)
  return known.length > 0 && known.length === paths.length ? known.flat() : undefined
}

function pathsOfSegment([program, ...args]: Segment, root: string): readonly string[] | undefined {
  if (!program?.plain || args.some(isExpanded)) return undefined
  const texts = args.map(({ text }) => text)
  const paths = readOnlyPaths(program.text, texts)?.map((at) => texts[at] ?? '')
  if (!paths?.every((path) => isPlainlyInside(path, root))) return undefined
  return paths.length === 0 && readsWorkingFolder(program.text, texts) ? ['.'] : paths
}

/** True if the shell replaces the word by others, which are not known yet. */
const isExpanded = ({ text, patternAt, plain }: Word): boolean => patternAt >= 0 || (plain && /^~|[=:]~/.test(text))

/** True for a directory, or a file with a single name, inside the workspace and without a link on the way to it. */
function isPlainlyInside(text: string, root: string): boolean {
  const path = resolve(root, text)
  if (text.split('/').includes('..') || !isWithin(path, root)) return false
  try {
    const status = lstatSync(path)
    if (!status.isDirectory() && !(status.isFile() && status.nlink === 1)) return false
    return realpathSync(path) === resolve(realpathSync(root), relative(root, path))
  } catch {
    return false // The path is missing, or is being changed at this moment.
  }
}
