/** Rates a command by its possible effects at the time of the call. */
import { lstatSync, realpathSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Risk } from '@sluice/sdk'
import { isWithin } from './forbidden-path.ts'
import { readOnlyPaths } from './read-only-commands.ts'
import { type Segment, splitCommand, type Word } from './split-command.ts'

/**
 * Returns `read` if every program of the command only reads: its options are known to be harmless, and its paths exist
 * inside the workspace with no link on the way. Returns `execute` for every other command, including one that cannot be
 * parsed. Never throws.
 */
export function commandRisk(command: string, root: string): Risk {
  let segments: Segment[]
  try {
    segments = splitCommand(command)
  } catch {
    return 'execute'
  }
  return segments.length > 0 && segments.every((segment) => isReadOnly(segment, root)) ? 'read' : 'execute'
}

function isReadOnly([program, ...args]: Segment, root: string): boolean {
  if (!program?.plain || args.some(isExpanded)) return false
  const paths = readOnlyPaths(
    program.text,
    args.map(({ text }) => text),
  )
  return paths?.every((at) => isPlainlyInside(args[at]?.text ?? '', root)) ?? false
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
