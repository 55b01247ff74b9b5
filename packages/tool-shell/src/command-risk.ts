/** What a command can do at this moment: whether it only looks at the workspace, or more. */
import { lstatSync, realpathSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import type { Risk } from '@sluice/sdk'
import { isWithin } from './forbidden-path.ts'
import { pathsLookedAt } from './plain-looks.ts'
import { type Segment, splitCommand, type Word } from './split-command.ts'

/**
 * `read` for a command of nothing but plain looks, each with known options and with paths that are there and stay in the
 * workspace without a link; `execute` for any other. Never throws; a command that cannot be understood is `execute`.
 */
export function commandRisk(command: string, root: string): Risk {
  let segments: Segment[]
  try {
    segments = splitCommand(command)
  } catch {
    return 'execute'
  }
  return segments.length > 0 && segments.every((segment) => isLooking(segment, root)) ? 'read' : 'execute'
}

function isLooking([program, ...args]: Segment, root: string): boolean {
  if (!program?.plain || args.some(isExpanded)) return false
  const paths = pathsLookedAt(
    program.text,
    args.map(({ text }) => text),
  )
  return paths?.every((at) => isPlainlyInside(args[at]?.text ?? '', root)) ?? false
}

/** The shell makes other words of it: it is not known yet which. */
const isExpanded = ({ text, patternAt, plain }: Word): boolean => patternAt >= 0 || (plain && /^~|[=:]~/.test(text))

/** True for a file or folder in the workspace that has no other name and no link on the way to it. */
function isPlainlyInside(text: string, root: string): boolean {
  const path = resolve(root, text)
  if (text.split('/').includes('..') || !isWithin(path, root)) return false
  try {
    const status = lstatSync(path)
    if (!status.isDirectory() && !(status.isFile() && status.nlink === 1)) return false
    return realpathSync(path) === resolve(realpathSync(root), relative(root, path))
  } catch {
    return false // The path is missing, or changes at this moment.
  }
}
