/** A recording to a program of the operator's own, run in the sandbox; what it prints is the text. */
import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import { isAbsolute, join, relative } from 'node:path'
import { AppError, errorText, type Host, type SpawnResult, type Workspace } from '@sluice/sdk'
import { FILE } from './config.ts'
import type { Transcriber } from './recording.ts'

const TEXT_BYTES_MAX = 1_048_576
const REASON_CHARS_MAX = 300
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
const ENTRIES_AT_ONCE = 100

export interface CommandOptions {
  readonly command: readonly string[]
  readonly timeoutMs: number
}

/**
 * Each recording gets a folder of its own below the workspace, which is removed afterwards. It is where the program starts and
 * all it may write; the recording is named relative to it, since a sandbox may show the folder under another path.
 */
export const byCommand =
  (host: Pick<Host, 'spawn' | 'workspace' | 'log'>, { command, timeoutMs }: CommandOptions): Transcriber =>
  async ({ bytes, fileName }, signal) => {
    const { root } = host.workspace
    const folder = `.transcription-${randomUUID()}`
    const [program = '', ...args] = command
    try {
      await host.workspace.write(`${folder}/${fileName}`, bytes)
      const result = await host.spawn({
        file: program,
        args: args.map((arg) => arg.replaceAll(FILE, fileName)),
        cwd: join(root, folder),
        env: environment(root),
        policy: { writable: [join(root, folder)], network: false },
        timeoutMs,
        outputBytesMax: TEXT_BYTES_MAX,
        signal,
      })
      if (signal.aborted) throw new AppError('aborted', `'${program}' was ended`)
      return printed(result, program)
    } catch (error) {
      throw asPromised(error)
    } finally {
      await removeFolder(host.workspace, folder).catch((error: unknown) =>
        host.log.warn('a recording could not be removed', { folder, error: errorText(error) }),
      )
    }
  }

/** What a program needs to find itself and its models; nothing that was meant for the daemon. */
function environment(root: string): Record<string, string> {
  const { PATH = '', LANG = 'C.UTF-8' } = process.env
  // What the agent writes is not run for its name.
  const path = PATH.split(':').filter((folder) => isAbsolute(folder) && `${relative(root, folder)}/`.startsWith('../'))
  return { PATH: path.join(':') || PATH_DEFAULT, HOME: homedir(), LANG }
}

function printed({ exitCode, signal, timedOut, stdout, stderr }: SpawnResult, program: string): string {
  // The same work under the same limit would end the same way.
  if (timedOut) throw new AppError('invalid_request', `'${program}' took longer than timeout_secs`)
  if (exitCode === null) throw new AppError('unavailable', `'${program}' was ended by ${signal}`)
  if (exitCode === 0) return stdout
  const reason = stderr.trim().split('\n').at(-1)?.slice(0, REASON_CHARS_MAX)
  throw new AppError('invalid_request', `'${program}' ended with exit code ${exitCode}${reason ? `: ${reason}` : ''}`)
}

/** A missing program or a full disk is the operator's to mend. */
function asPromised(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code === 'aborted' || error.code === 'invalid_request') return error
  return new AppError('unavailable', error.message, { cause: error })
}

/** With whatever the program left in it. */
async function removeFolder(workspace: Workspace, folder: string): Promise<void> {
  const ifThere = (error: unknown): void => {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
  }
  const listed = await workspace.list(folder, { limit: ENTRIES_AT_ONCE }).catch(ifThere)
  for (const { kind, name } of listed?.entries ?? []) {
    await (kind === 'folder' ? removeFolder(workspace, `${folder}/${name}`) : workspace.remove(`${folder}/${name}`))
  }
  if (listed?.more) await removeFolder(workspace, folder)
  else await workspace.remove(folder).catch(ifThere)
}
