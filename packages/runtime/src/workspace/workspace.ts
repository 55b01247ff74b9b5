/** The `Workspace` on a real file system: every tool reads and writes its files through it. */
import { realpathSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import {
  type AgentWorkspace,
  AppError,
  ATTACHMENTS,
  type FileClaim,
  type FileViewer,
  fileClaim,
  type NewAttachment,
  type OpenFile,
  ownerFolder,
  type Workspace,
} from '@sluice/sdk'
import { attach, keepReceived, saveResult } from './attach.ts'
import { entriesNamed, listFolder, openFile, readFile, removeEntry, replaceFile } from './file.ts'
import { enterFolder, type Folder, handlePaths, openFolder } from './folder.ts'
import { attachmentsOf, chosenPlace, FORMER, placeNames, RESULTS } from './owned-places.ts'
import { foldedName, forbiddenBelow, isForbidden, parsePath } from './path.ts'
import { settleAttachments } from './settle-attachments.ts'

export interface WorkspaceOptions {
  /** May be a link. If it does not exist, the first write makes it with mode 0700. */
  readonly root: string
  /** `[security.policy] forbidden_paths`, with `~` replaced. */
  readonly forbidden: readonly string[]
  /** The folder in which open handles are paths; null without such a folder. Default: the one of this machine. */
  readonly handles?: string | null
  /** The folder outside of the workspace with the files that have owners. Absent: no file has an owner. */
  readonly files?: string
  /** Default: the daemon itself. */
  readonly viewer?: FileViewer
}

export const createWorkspace = (options: WorkspaceOptions): AgentWorkspace => new FolderWorkspace(options)

/** The root and the owner, by which files are claimed. The file system compares the names below them. */
const OWNED_DEPTH = 2
const NOTHING = { entries: [], more: false } as const

type Use = 'read' | 'write' | 'remove'

/** A path: the folder that its names begin in, and the names from there. */
interface Located {
  readonly base: 'workspace' | 'files'
  readonly names: readonly string[]
}

/** The state that the workspace shares with its views for callers. */
interface Place {
  /** The path of the workspace without links, once it is known. */
  real: string | undefined
}

/**
 * On Linux, each folder of a path is opened inside the one before without following links, and the last step happens inside
 * the folder that is held open, so a renamed folder cannot lead out. On other systems the path is checked before and after
 * each step, which leaves a moment between the two.
 */
class FolderWorkspace implements AgentWorkspace {
  readonly root: string
  readonly #options: WorkspaceOptions
  readonly #handles: string | null
  readonly #place: Place

  constructor(options: WorkspaceOptions, place: Place = { real: undefined }) {
    const { root, handles = handlePaths() } = options
    this.root = resolve(root)
    this.#options = options
    this.#handles = handles
    this.#place = place
  }

  as(viewer: FileViewer): Workspace {
    return new FolderWorkspace({ ...this.#options, handles: this.#handles, viewer }, this.#place)
  }

  read(path: string, { bytesMax }: { readonly bytesMax: number }): Promise<Uint8Array> {
    return this.#inside(path, 'read', (folder, name) => readFile(folder, name, bytesMax))
  }

  open(path: string, { bytesMax }: { readonly bytesMax: number }): Promise<OpenFile> {
    return this.#inside(path, 'read', (folder, name) => openFile(folder, name, bytesMax))
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    const { files, viewer: { caller, ...share } = {} } = this.#options
    const write = () => this.#inside(path, 'write', (folder, name) => replaceFile(folder, name, bytes))
    const claim = this.#claim(await this.#parse(path))
    const [place] = claim.kind === 'owned' ? claim.places : []
    if (files === undefined || !caller || place?.root !== 'results') return write()
    return saveResult(files, { ...share, owner: caller.owner, names: place.names, length: bytes.length }, write)
  }

  remove(path: string): Promise<void> {
    return this.#inside(path, 'remove', removeEntry)
  }

  async list(path: string, { limit }: { readonly limit: number }): ReturnType<Workspace['list']> {
    const names = await this.#parse(path)
    if (this.#claim(names).kind === 'folder') return this.#listOwners(limit)
    const { base, names: below } = await this.#locate(path, names, 'read')
    if (base === 'workspace' && below.length === 0 && this.#place.real === undefined) return NOTHING
    try {
      await using folder = await this.#enter(base, below, false)
      const { entries, more } = await listFolder(folder, limit)
      await folder.verify()
      // The link to the attachments is a folder for the caller.
      const isRoot = base === 'workspace' && below.length === 0 && this.#options.files !== undefined
      return {
        entries: isRoot ? entries.map((entry) => (entry.name === ATTACHMENTS ? { ...entry, kind: 'folder' } : entry)) : entries,
        more,
      }
    } catch (error) {
      throw refusal(path, error)
    }
  }

  async attach(attachment: NewAttachment): Promise<string> {
    const { files } = this.#options
    if (files === undefined) throw new AppError('internal', 'This workspace keeps no attachments')
    const { owner, bytes } = attachment
    return attach(files, attachment, (path) =>
      'sha256' in bytes ? keepReceived(files, owner, { path, file: bytes.path }) : this.write(path, bytes),
    )
  }

  get shown(): readonly string[] {
    const { files, viewer } = this.#options
    if (files === undefined || !viewer?.caller || viewer.caller.names) return []
    try {
      return [realpathSync(attachmentsOf(files, viewer.caller.owner))]
    } catch {
      return []
    }
  }

  /** Lists the folder of all attachments: the one folder of the caller, and for an operator those without an owner. */
  async #listOwners(limit: number): ReturnType<Workspace['list']> {
    const { files = '', viewer } = this.#options
    // A caller who opens only what the conversation names finds nothing by looking.
    if (viewer?.caller?.names) return NOTHING
    await settleAttachments(this.root, files)
    const found = async (name: string, only?: string): ReturnType<Workspace['list']> => {
      const at = await realpath(join(files, name)).catch(() => undefined)
      if (at === undefined) return NOTHING
      await using folder = await openFolder(at, this.#handles)
      return only === undefined ? await listFolder(folder, limit) : { entries: await entriesNamed(folder, [only]), more: false }
    }
    const { caller } = viewer ?? {}
    const owners = await found(ATTACHMENTS, caller && ownerFolder(caller.owner))
    const former = caller?.isOperator === false ? NOTHING : await found(FORMER)
    const entries = [...owners.entries, ...former.entries]
    return { entries: entries.slice(0, limit), more: owners.more || former.more || entries.length > limit }
  }

  /** The names from the workspace down to the path. Throws `forbidden` for a path outside or in `forbidden_paths`. */
  async #parse(path: string): Promise<string[]> {
    this.#place.real ??= await realpath(this.root).catch(() => undefined)
    const { forbidden } = this.#options
    const roots = this.#place.real === undefined || this.#place.real === this.root ? [this.root] : [this.root, this.#place.real]
    const names = parsePath(path, roots)
    if (isForbidden(names, forbiddenBelow(roots, forbidden))) throw new AppError('forbidden', `'${path}' is in forbidden_paths`)
    return names
  }

  #claim(names: readonly string[]): FileClaim {
    const { files, viewer } = this.#options
    return files === undefined
      ? { kind: 'shared' }
      : fileClaim(
          names.map((name, at) => (at < OWNED_DEPTH ? foldedName(name) : name)),
          viewer?.caller,
        )
  }

  /** Finds where a path lies. Throws `forbidden` for a file of others, and for a change of an attachment. */
  async #locate(path: string, names: readonly string[], use: Use): Promise<Located> {
    const claim = this.#claim(names)
    const { files } = this.#options
    if (files === undefined || claim.kind === 'shared') return { base: 'workspace', names }
    if (claim.kind === 'folder') {
      if (use === 'read') throw new AppError('invalid_request', `'${path}' is a folder`)
      throw new AppError('forbidden', `'${path}' is the folder of the attachments of messages, which no tool changes`)
    }
    await settleAttachments(this.root, files)
    const place = await chosenPlace(files, claim.places)
    if (!place) throw new AppError('forbidden', `'${path}' belongs to another person or conversation`)
    if (claim.isReadOnly && use !== 'read')
      throw new AppError('forbidden', `'${path}' is an attachment of a message, which no tool changes`)
    return { base: 'files', names: placeNames(place) }
  }

  /** Opens the folder with these names; with `create`, missing folders are made. */
  async #enter(base: Located['base'], names: readonly string[], create: boolean): Promise<Folder> {
    const { files } = this.#options
    if (base === 'files' && files !== undefined) {
      await mkdir(files, { recursive: true, mode: 0o700 })
      return this.#descend(await realpath(files), names, create)
    }
    if (create) await mkdir(this.#place.real ?? this.root, { recursive: true, mode: 0o700 })
    this.#place.real ??= await realpath(this.root)
    return this.#descend(this.#place.real, names, create)
  }

  async #descend(from: string, names: readonly string[], create: boolean): Promise<Folder> {
    let folder = await openFolder(from, this.#handles)
    for (const name of names) folder = await enterFolder(folder, name, { handles: this.#handles, create })
    return folder
  }

  /** Runs `run` with the folder that contains the last name of the path. */
  async #inside<Result>(path: string, use: Use, run: (folder: Folder, name: string) => Promise<Result>): Promise<Result> {
    const named = await this.#parse(path)
    const { base, names } = await this.#locate(path, named, use)
    const name = names.at(-1)
    if (name === undefined) throw new AppError('invalid_request', 'the workspace itself is a folder')
    try {
      await using folder = await this.#enter(base, names.slice(0, -1), use === 'write')
      await folder.verify()
      const result = await run(folder, name)
      await folder.verify()
      if (use !== 'remove') this.#options.viewer?.used?.(named.join('/'))
      return result
    } catch (error) {
      if (base === 'files' && names[0] === RESULTS && (error as NodeJS.ErrnoException).code === 'ENOENT')
        throw new AppError('not_found', `'${path}' is not kept any more: results make room for newer files. Repeat the call that gave it`)
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
