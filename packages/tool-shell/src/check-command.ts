/** Checks a command against the policy of the agent before anything runs (docs/contract.md#policy). */
import { basename, dirname, resolve } from 'node:path'
import { AppError, type CallingAgent, type Policy, policyHeader } from '@sluice/sdk'
import { expandHome, forbiddenMention } from './forbidden-path.ts'
import { areKnownArguments } from './known-arguments.ts'
import { isAssignment, type Segment, splitCommand, type Word } from './split-command.ts'
import { unsafeArgument } from './unsafe-arguments.ts'

/** Folders in which a listed program may be called by its full path. */
const SYSTEM_FOLDERS = ['/bin', '/usr/bin', '/usr/local/bin', '/sbin', '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin']
const FOLDERS_MAX = 32

type CheckingAgent = Pick<CallingAgent, 'agent' | 'policy'> & { readonly workspace: Pick<CallingAgent['workspace'], 'root'> }

/**
 * Throws `forbidden` with the reason, or `invalid_request` for an empty command. Three checks run in this order:
 *
 * 1. The command has no expansion, substitution, redirection to a file or background job.
 * 2. Each program is in `allowed_commands`, has no assignment before it and no argument that makes it run other code.
 *    This check is skipped with `level = "full"` or `*` in `allowed_commands`.
 * 3. No word names a path in `forbidden_paths`.
 *
 * `shown` holds the folders of skills, which a forbidden folder above them does not forbid.
 *
 * These checks do not confine a hostile program: an interpreter, a build tool or `git` runs code that it finds in the
 * workspace, links are not followed here, and a path that the command computes is not seen. The sandbox is the boundary.
 */
export function checkCommand(command: string, { agent, policy, workspace: { root } }: CheckingAgent, shown: readonly string[] = []): void {
  const section = policyHeader(agent)
  const segments = splitCommand(command)
  if (segments.length === 0) throw new AppError('invalid_request', 'The command is empty')
  const allowsAny = allowsAnyProgram(policy)
  let folders: readonly string[] = [root]
  for (const segment of segments) {
    if (!allowsAny) checkProgram(segment, policy.allowed_commands, section)
    const path = forbiddenMention(segment, folders, { root, forbidden: policy.forbidden_paths, shown })
    if (path !== undefined) throw new AppError('forbidden', `'${path}' touches a path in forbidden_paths under ${section}`)
    folders = foldersAfter(segment, folders, root)
  }
}

/**
 * Returns true if a listed program has an argument that is not known to be harmless. Such a command needs an approval even
 * if the shell is auto-approved. Returns false with `level = "full"`, with `*` in `allowed_commands`, and for a command
 * that cannot be parsed, which `checkCommand` refuses.
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

function checkProgram(segment: Segment, allowed: readonly string[], section: string): void {
  const [program, ...args] = segment
  if (!program) return
  if (isAssignment(program)) throw new AppError('forbidden', `'${program.text}' sets a variable, which the shell tool does not allow`)
  if (!isListed(program, allowed)) {
    throw new AppError('forbidden', `'${program.text}' is not in allowed_commands under ${section}`)
  }
  const unsafe = unsafeArgument(
    basename(program.text),
    args.map(({ text }) => text),
  )
  if (unsafe !== undefined) throw new AppError('forbidden', `'${program.text}' may not be given '${unsafe}'`)
}

/** An entry without a slash allows the program of that name in the PATH or a system folder; one with a slash allows that file. */
function isListed({ text, patternAt }: Word, allowed: readonly string[]): boolean {
  if (patternAt >= 0) return false
  if (allowed.includes(text)) return true
  return SYSTEM_FOLDERS.includes(dirname(text)) && allowed.includes(basename(text))
}

/** Returns every folder in which the next segment may run, because a `cd` may be skipped or may fail. */
function foldersAfter(segment: Segment, folders: readonly string[], root: string): readonly string[] {
  const at = segment.findIndex(({ text }) => text === 'cd' || text === 'chdir' || text === 'pushd')
  if (at < 0) return folders
  const target = segment.slice(at + 1).find(({ text }) => !/^-./.test(text))
  if (target && target.patternAt >= 0)
    throw new AppError('forbidden', `'cd ${target.text}' leads to a folder that the command does not spell out`)
  const moved = folders.map((folder) => resolve(folder, expandHome(target?.text ?? root, root)))
  const all = [...new Set([...folders, ...moved])]
  if (all.length > FOLDERS_MAX) throw new AppError('forbidden', 'The command changes its folder too often')
  return all
}
