/** Runs a program of the operator in the sandbox, in a folder of the workspace that exists only for the run. */
import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import { isAbsolute, join, relative } from 'node:path'
import { AppError, errorText, type Host, type Workspace } from '@sluice/sdk'

const OUTPUT_BYTES_MAX = 1_048_576
const REASON_CHARS_MAX = 300
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
const ENTRIES_AT_ONCE = 100

export interface FolderRun {
  /** The program and its arguments. It does not run in a shell. */
  readonly command: readonly string[]
  /** The beginning of the folder's name, such as `transcription`. */
  readonly name: string
  /** The files that the program finds in its folder, by name. */
  readonly files: Readonly<Record<string, Uint8Array>>
  readonly workspace: Workspace
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** The folder of a run after the program has ended. */
export interface RunFolder {
  readonly stdout: string
  /** Reads a file that the program wrote. Throws as `Workspace.read` does. */
  read(file: string, options: { readonly bytesMax: number }): Promise<Uint8Array>
}

/**
 * Starts the program in its folder, the only one that it may write to, without network; resolves to what `take` returns for an exit
 * code of 0. The folder is removed with everything in it. File names in arguments are relative, because a sandbox may show the folder
 * under another path. Throws `invalid_request` for another exit code or after the time limit, `unavailable` if a signal ended the
 * program, and `aborted`.
 */
export async function runInFolder<Result>(host: Host, run: FolderRun, take: (folder: RunFolder) => Promise<Result>): Promise<Result> {
  const { workspace, signal } = run
  const folder = `.${run.name}-${randomUUID()}`
  try {
    for (const [file, bytes] of Object.entries(run.files)) await workspace.write(`${folder}/${file}`, bytes)
    const stdout = await runProgram(host, run, join(workspace.root, folder))
    return await take({ stdout, read: (file, options) => workspace.read(`${folder}/${file}`, options) })
  } catch (error) {
    throw signal.aborted ? new AppError('aborted', `The program '${run.command[0]}' was aborted`) : error
  } finally {
    await removeFolder(workspace, folder).catch((error: unknown) =>
      host.log.warn('the folder of a program was not removed from the workspace', { folder, error: errorText(error) }),
    )
  }
}

async function runProgram(host: Host, { command, workspace, timeoutMs, signal }: FolderRun, cwd: string): Promise<string> {
  const [program = '', ...args] = command
  const result = await host.spawn({
    file: program,
    args,
    cwd,
    env: environment(workspace.root),
    policy: { writable: [cwd], network: false },
    timeoutMs,
    outputBytesMax: OUTPUT_BYTES_MAX,
    signal,
  })
  // Another attempt with the same limit would time out again.
  if (result.timedOut) throw new AppError('invalid_request', `'${program}' took longer than timeout_secs`)
  if (result.exitCode === null) throw new AppError('unavailable', `'${program}' was ended by ${result.signal}`)
  if (result.exitCode === 0) return result.stdout
  const reason = result.stderr.trim().split('\n').at(-1)?.slice(0, REASON_CHARS_MAX)
  throw new AppError('invalid_request', `'${program}' ended with exit code ${result.exitCode}${reason ? `: ${reason}` : ''}`)
}

/** Returns the variables that a program needs to find itself and its models. Secrets of the daemon are not among them. */
function environment(root: string): Record<string, string> {
  const { PATH = '', LANG = 'C.UTF-8' } = process.env
  // Without folders of the workspace, the agent cannot replace the program by a file of the same name.
  const path = PATH.split(':').filter((folder) => isAbsolute(folder) && `${relative(root, folder)}/`.startsWith('../'))
  return { PATH: path.join(':') || PATH_DEFAULT, HOME: homedir(), LANG }
}

/** Removes a folder with everything in it. Does nothing for a missing one. */
async function removeFolder(workspace: Workspace, folder: string): Promise<void> {
  const ignoreMissing = (error: unknown): void => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
  }
  const listed = await workspace.list(folder, { limit: ENTRIES_AT_ONCE }).catch(ignoreMissing)
  for (const { kind, name } of listed?.entries ?? []) {
    await (kind === 'folder' ? removeFolder(workspace, `${folder}/${name}`) : workspace.remove(`${folder}/${name}`))
  }
  if (listed?.more) await removeFolder(workspace, folder)
  else await workspace.remove(folder).catch(ignoreMissing)
}
