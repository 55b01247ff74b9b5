/** Transcribes with a program of the operator, which runs in the sandbox and prints the text. */
import { randomUUID } from 'node:crypto'
import { homedir } from 'node:os'
import { isAbsolute, join, relative } from 'node:path'
import { AppError, errorText, type Host, type SpawnResult, type Workspace } from '@sluice/sdk'
import { FILE } from './config.ts'
import { permanentOrUnavailable, type Recording, type TranscribeOptions, type Transcriber } from './recording.ts'

const TEXT_BYTES_MAX = 1_048_576
const REASON_CHARS_MAX = 300
const PATH_DEFAULT = '/usr/local/bin:/usr/bin:/bin'
const ENTRIES_AT_ONCE = 100

export class CommandTranscriber implements Transcriber {
  readonly #host: Host
  readonly #program: string
  readonly #args: readonly string[]
  readonly #timeoutMs: number

  /** Replaces `{file}` in each argument by the name of the recording. */
  constructor(host: Host, [program = '', ...args]: readonly string[], timeoutMs: number) {
    this.#host = host
    this.#program = program
    this.#args = args
    this.#timeoutMs = timeoutMs
  }

  /**
   * Each recording gets its own folder in the workspace, which is removed afterwards. The program starts in that folder and
   * may write nowhere else. The file name is relative, because a sandbox may show the folder under another path.
   */
  async transcribe({ bytes, fileName }: Recording, { workspace, signal }: TranscribeOptions): Promise<string> {
    const { log } = this.#host
    const folder = `.transcription-${randomUUID()}`
    try {
      await workspace.write(`${folder}/${fileName}`, bytes)
      const result = await this.#run(workspace.root, folder, fileName, signal)
      if (signal.aborted) throw new AppError('aborted', `The program '${this.#program}' was aborted`)
      return this.#textOf(result)
    } catch (error) {
      throw permanentOrUnavailable(error)
    } finally {
      await removeFolder(workspace, folder).catch((error: unknown) =>
        log.warn('recording not removed from the workspace', { folder, error: errorText(error) }),
      )
    }
  }

  #run(root: string, folder: string, fileName: string, signal: AbortSignal): Promise<SpawnResult> {
    const cwd = join(root, folder)
    return this.#host.spawn({
      file: this.#program,
      args: this.#args.map((arg) => arg.replaceAll(FILE, fileName)),
      cwd,
      env: environment(root),
      policy: { writable: [cwd], network: false },
      timeoutMs: this.#timeoutMs,
      outputBytesMax: TEXT_BYTES_MAX,
      signal,
    })
  }

  #textOf({ exitCode, signal, timedOut, stdout, stderr }: SpawnResult): string {
    // Another attempt with the same limit would time out again.
    if (timedOut) throw new AppError('invalid_request', `'${this.#program}' took longer than timeout_secs`)
    if (exitCode === null) throw new AppError('unavailable', `'${this.#program}' was ended by ${signal}`)
    if (exitCode === 0) return stdout
    const reason = stderr.trim().split('\n').at(-1)?.slice(0, REASON_CHARS_MAX)
    throw new AppError('invalid_request', `'${this.#program}' ended with exit code ${exitCode}${reason ? `: ${reason}` : ''}`)
  }
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
