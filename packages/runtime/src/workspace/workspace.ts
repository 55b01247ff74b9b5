/** The `Workspace` on a real file system: every tool reads and writes its files through it. */
import { mkdir, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type AgentWorkspace, AppError, type FileViewer, type OpenFile, type Workspace } from '@sluice/sdk'
import { listFolder, openFile, readFile, removeEntry, replaceFile } from './file.ts'
import { enterFolder, type Folder, handlePaths, openFolder } from './folder.ts'
import { forbiddenBelow, isForbidden, parsePath } from './path.ts'

export interface WorkspaceOptions {
  /** May be a link. If it does not exist, the first write makes it with mode 0700. */
  readonly root: string
  /** `[security.policy] forbidden_paths`, with `~` replaced. */
  readonly forbidden: readonly string[]
  /** The folder in which open handles are paths; null: there is none. Default: the one of this machine. */
  readonly handles?: string | null
  /** Default: all callers. */
  readonly viewer?: FileViewer
}

export const createWorkspace = (options: WorkspaceOptions): AgentWorkspace => new FolderWorkspace(options)

/**
 * On Linux, each folder of a path is opened inside the one before without following links, and the last step happens inside
 * the folder that is held open, so a renamed folder cannot lead out. On other systems the path is checked before and after
 * each step, which leaves a moment between the two.
 */
class FolderWorkspace implements AgentWorkspace {
  readonly root: string
  readonly #options: WorkspaceOptions
  readonly #handles: string | null
  /** The workspace's path without links, once it is known. */
  #real: string | undefined

  constructor(options: WorkspaceOptions) {
    const { root, handles = handlePaths() } = options
    this.root = resolve(root)
    this.#options = options
    this.#handles = handles
  }

  as(viewer: FileViewer): Workspace {
    return new FolderWorkspace({ ...this.#options, viewer })
  }

  read(path: string, { bytesMax }: { readonly bytesMax: number }): Promise<Uint8Array> {
    return this.#inside(path, 'read', (folder, name) => readFile(folder, name, bytesMax))
  }

  open(path: string, { bytesMax }: { readonly bytesMax: number }): Promise<OpenFile> {
    return this.#inside(path, 'read', (folder, name) => openFile(folder, name, bytesMax))
  }

  write(path: string, bytes: Uint8Array): Promise<void> {
    return this.#inside(path, 'write', (folder, name) => replaceFile(folder, name, bytes))
  }

  remove(path: string): Promise<void> {
    return this.#inside(path, 'remove', removeEntry)
  }

  async list(path: string, { limit }: { readonly limit: number }): ReturnType<Workspace['list']> {
    const names = await this.#locate(path)
    if (names.length === 0 && this.#real === undefined) return { entries: [], more: false }
    try {
      await using folder = await this.#enter(names, false)
      const listed = await listFolder(folder, limit)
      await folder.verify()
      return listed
    } catch (error) {
      throw refusal(path, error)
    }
  }

  /** The names from the workspace down to the path. Throws `forbidden` for a path outside or in `forbidden_paths`. */
  async #locate(path: string): Promise<string[]> {
    this.#real ??= await realpath(this.root).catch(() => undefined)
    const { forbidden } = this.#options
    const roots = this.#real === undefined || this.#real === this.root ? [this.root] : [this.root, this.#real]
    const names = parsePath(path, roots)
    if (isForbidden(names, forbiddenBelow(roots, forbidden))) throw new AppError('forbidden', `'${path}' is in forbidden_paths`)
    return names
  }

  /** Opens the folder with these names; with `create`, missing folders are made. */
  async #enter(names: readonly string[], create: boolean): Promise<Folder> {
    if (create) await mkdir(this.#real ?? this.root, { recursive: true, mode: 0o700 })
    this.#real ??= await realpath(this.root)
    let folder = await openFolder(this.#real, this.#handles)
    for (const name of names) folder = await enterFolder(folder, name, { handles: this.#handles, create })
    return folder
  }

  /** Runs `run` with the folder that contains the last name of the path. */
  async #inside<Result>(
    path: string,
    use: 'read' | 'write' | 'remove',
    run: (folder: Folder, name: string) => Promise<Result>,
  ): Promise<Result> {
    const names = await this.#locate(path)
    const name = names.at(-1)
    if (name === undefined) throw new AppError('invalid_request', 'the workspace itself is a folder')
    try {
      await using folder = await this.#enter(names.slice(0, -1), use === 'write')
      await folder.verify()
      const result = await run(folder, name)
      await folder.verify()
      if (use !== 'remove') this.#options.viewer?.used?.(names.join('/'))
      return result
    } catch (error) {
      throw refusal(path, error)
    }
  }
}

/** The error that the caller gets for a fault of the file system. */
function refusal(path: string, error: unknown): AppError {
  if (error instanceof AppError) return new AppError(error.code, `'${path}': ${error.message}`, { cause: error })
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return new AppError('not_found', `'${path}' does not exist`)
    case 'ENOTDIR':
      return new AppError('not_found', `'${path}' goes through a file as if it were a folder`)
    case 'ELOOP':
      return new AppError('forbidden', `'${path}' is a link, and links are not followed`)
    case 'ENXIO':
      return new AppError('forbidden', `'${path}' is not a plain file`)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new AppError('forbidden', `'${path}': the file system does not permit it`)
    case 'EISDIR':
      return new AppError('invalid_request', `'${path}' is a folder`)
    case 'ENOTEMPTY':
    case 'EEXIST':
      return new AppError('conflict', `'${path}' is a folder that is not empty`)
    case 'ENAMETOOLONG':
      return new AppError('invalid_request', `'${path.slice(0, 100)}…' has too long a name`)
    case 'ENOSPC':
    case 'EDQUOT':
      return new AppError('unavailable', `'${path}': no space left`, { cause: error })
    default:
      return new AppError('unavailable', `'${path}': the file system failed`, { cause: error })
  }
}
