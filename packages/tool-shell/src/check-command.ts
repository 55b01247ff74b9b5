/** The policy's look at a command, before anything runs (`[security.policy]`). */
import { basename, dirname, resolve } from 'node:path'
import { AppError, type Policy } from '@sluice/sdk'
import { expandHome, forbiddenMention } from './forbidden-path.ts'
import { areKnownArguments } from './known-arguments.ts'
import { isAssignment, type Segment, splitCommand, type Word } from './split-command.ts'
import { unsafeArgument } from './unsafe-arguments.ts'

/** Where a program of a listed name may be called by its whole path. */
const SYSTEM_FOLDERS = ['/bin', '/usr/bin', '/usr/local/bin', '/sbin', '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']
const FOLDERS_MAX = 32

/**
 * Throws `forbidden` with the reason. In this order: what the shell would expand, substitute, redirect or put into the
 * background is refused; each program must be in `allowed_commands`, without assignments before it and without arguments
 * that make it more than its name says; no word may name a forbidden path.
 *
 * With `level = "full"` or `*` in `allowed_commands`, the second point falls away and the other two stay.
 *
 * None of this is a boundary for a program that wants out: an interpreter, a build tool or `git` runs what it finds in
 * the workspace, links are not followed here, and no path is seen that is not spelled out. The boundary is the sandbox.
 */
export function checkCommand(command: string, policy: Policy, root: string): void {
  const segments = splitCommand(command)
  if (segments.length === 0) throw new AppError('invalid_request', 'the command is empty')
  const allowsAny = allowsAnyProgram(policy)
  let folders: readonly string[] = [root]
  for (const segment of segments) {
    if (!allowsAny) checkProgram(segment, policy.allowed_commands)
    const path = forbiddenMention(segment, folders, { root, forbidden: policy.forbidden_paths })
    if (path !== undefined) throw new AppError('forbidden', `'${path}' touches a path in forbidden_paths under [security.policy]`)
    folders = foldersAfter(segment, folders, root)
  }
}

/**
 * True if one of the listed programs has an argument that is not known to be harmless: such a command asks, also where the
 * shell is auto-approved. False at `level = "full"`, with `*` in `allowed_commands`, and for a command that is refused anyway.
 */
export function asksForArguments(command: string, policy: Policy): boolean {
  if (allowsAnyProgram(policy)) return false
  try {
    return splitCommand(command).some(([program, ...args]) => {
      if (!program) return false
      return (
        args.some(({ patternAt, text }) => patternAt >= 0 && text.startsWith('-')) ||
        !areKnownArguments(
          basename(program.text),
          args.map(({ text }) => text),
        )
      )
    })
  } catch {
    return false
  }
}

const allowsAnyProgram = ({ level, allowed_commands }: Policy): boolean => level === 'full' || allowed_commands.includes('*')

function checkProgram(segment: Segment, allowed: readonly string[]): void {
  const [program, ...args] = segment
  if (!program) return
  if (isAssignment(program)) throw new AppError('forbidden', `'${program.text}' sets a variable, which the shell tool does not allow`)
  if (!isListed(program, allowed)) {
    throw new AppError('forbidden', `'${program.text}' is not in allowed_commands under [security.policy]`)
  }
  const unsafe = unsafeArgument(
    basename(program.text),
    args.map(({ text }) => text),
  )
  if (unsafe !== undefined) throw new AppError('forbidden', `'${program.text}' may not be given '${unsafe}'`)
}

/** A bare entry stands for the program of that name in the PATH or a system folder; one with a slash for that file. */
function isListed({ text, patternAt }: Word, allowed: readonly string[]): boolean {
  if (patternAt >= 0) return false
  if (allowed.includes(text)) return true
  return SYSTEM_FOLDERS.includes(dirname(text)) && allowed.includes(basename(text))
}

/** Every folder the next segment may run in: a `cd` may have been skipped or have failed. */
function foldersAfter(segment: Segment, folders: readonly string[], root: string): readonly string[] {
  const at = segment.findIndex(({ text }) => text === 'cd' || text === 'chdir' || text === 'pushd')
  if (at < 0) return folders
  const target = segment.slice(at + 1).find(({ text }) => !/^-./.test(text))
  if (target && target.patternAt >= 0) throw new AppError('forbidden', `'cd ${target.text}' leads to a folder that is not spelled out`)
  const moved = folders.map((folder) => resolve(folder, expandHome(target?.text ?? root, root)))
  const all = [...new Set([...folders, ...moved])]
  if (all.length > FOLDERS_MAX) throw new AppError('forbidden', 'the command changes its folder too often')
  return all
}
