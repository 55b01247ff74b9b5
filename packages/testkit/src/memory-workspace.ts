/** A workspace in memory. It has no links, so it needs no defence against them. */
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import {
  type AgentWorkspace,
  AppError,
  ATTACHMENTS,
  attachmentPath,
  type FileViewer,
  fileClaim,
  ownerFolder,
  type Workspace,
  type WorkspaceEntry,
} from '@sluice/sdk'

const PIECE_BYTES = 65_536

/** `files` is the initial content by path relative to `root`. */
export function memoryWorkspace(files: Readonly<Record<string, string | Uint8Array>> = {}, root = '/workspace'): AgentWorkspace {
  const kept = new Map<string, Uint8Array>()
  for (const [path, content] of Object.entries(files)) kept.set(path, Buffer.from(content))

  /** Returns the path relative to the root; empty for the root itself. Throws `forbidden` for a path outside it. */
  const locate = (path: string): string => {
    const absolute = posix.resolve(root, path)
    const isInside = absolute === root || absolute.startsWith(`${root}/`)
    if (!isInside || path.includes('\0') || path.split('/').includes('..')) {
      throw new AppError('forbidden', `'${path}' is outside the workspace`)
    }
    return posix.relative(root, absolute)
  }
  const missing = (path: string) => new AppError('not_found', `'${path}' does not exist`)

  const contentOf = (path: string, bytesMax: number): Uint8Array => {
    const bytes = kept.get(locate(path))
    if (!bytes) throw missing(path)
    if (bytes.length > bytesMax) throw new AppError('too_large', `'${path}' has ${bytes.length} bytes; at most ${bytesMax} are read`)
    return Uint8Array.from(bytes)
  }

  return agentWorkspace({
    root,
    read: async (path, { bytesMax }) => contentOf(path, bytesMax),
    async open(path, { bytesMax }) {
      const bytes = contentOf(path, bytesMax)
      let rest = bytes
      return {
        bytes: bytes.length,
        modifiedAtMs: 0,
        async read() {
          const piece = rest.subarray(0, PIECE_BYTES)
          rest = rest.subarray(PIECE_BYTES)
          return piece
        },
        [Symbol.asyncDispose]: async () => {},
      }
    },
    async write(path, bytes) {
      const name = locate(path)
      if (name === '') throw new AppError('invalid_request', 'The root of the workspace is not a file')
      kept.set(name, Uint8Array.from(bytes))
    },
    async list(path, { limit }) {
      const folder = locate(path)
      const prefix = folder === '' ? '' : `${folder}/`
      const found = new Map<string, WorkspaceEntry>()
      for (const [name, bytes] of kept) {
        if (!name.startsWith(prefix)) continue
        const [first = '', ...rest] = name.slice(prefix.length).split('/')
        const kind = rest.length > 0 ? 'folder' : 'file'
        found.set(first, { name: first, kind, bytes: kind === 'file' ? bytes.length : 0, modifiedAtMs: 0 })
      }
      if (folder !== '' && found.size === 0) throw missing(path)
      const entries = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
      return { entries: entries.slice(0, limit), more: entries.length > limit }
    },
    async remove(path) {
      if (!kept.delete(locate(path))) throw missing(path)
    },
  })
}

/** Adds `as` and `attach` to a workspace. The files of callers are kept apart by the rule of real workspaces. */
export function agentWorkspace(workspace: Workspace): AgentWorkspace {
  return {
    ...workspace,
    as: (viewer) => viewed(workspace, viewer),
    async attach({ owner, bytes, extension, limit }) {
      const path = attachmentPath(owner, bytes, extension)
      limit?.check({ own: bytes.length, pool: bytes.length })
      await workspace.write(path, 'sha256' in bytes ? await readFile(bytes.path) : bytes)
      return path
    },
  }
}

/** The files of one caller. */
function viewed(workspace: Workspace, { caller, used, limit }: FileViewer): Workspace {
  const { root } = workspace
  const namesOf = (path: string) => posix.relative(root, posix.resolve(root, path)).split('/')
  const locate = async (path: string, isRead: boolean): Promise<string> => {
    const claim = caller ? fileClaim(namesOf(path), caller) : undefined
    if (claim?.kind !== 'owned') return path
    // A folder in attachments is that of an owner here, so an attachment without an owner is a file.
    const found = claim.places.filter((place) => place.root !== 'former' || place.names.length === 1)
    const places = found.map(({ root: first, names }) => [first === 'former' ? ATTACHMENTS : first, ...names].join('/'))
    if (places.length === 0 || (claim.isReadOnly && !isRead))
      throw new AppError('forbidden', `'${path}' belongs to another person or conversation`)
    for (const place of places) if (await isThere(workspace, place)) return place
    return places[0] ?? path
  }
  const note = (path: string) => used?.(namesOf(path).join('/'))
  return {
    root,
    async read(path, options) {
      const bytes = await workspace.read(await locate(path, true), options)
      note(path)
      return bytes
    },
    async open(path, options) {
      const file = await workspace.open(await locate(path, true), options)
      note(path)
      return file
    },
    async write(path, bytes) {
      const at = await locate(path, false)
      const claim = caller ? fileClaim(namesOf(path), caller) : undefined
      if (claim?.kind === 'owned') limit?.check({ own: bytes.length, pool: bytes.length })
      await workspace.write(at, bytes)
      note(path)
    },
    async list(path, options) {
      const listed = await workspace.list(await locate(path, true), options)
      const isFolder = caller !== undefined && fileClaim(namesOf(path), caller).kind === 'folder'
      return isFolder
        ? { ...listed, entries: listed.entries.filter(({ name }) => !caller.names && name === ownerFolder(caller.owner)) }
        : listed
    },
    remove: async (path) => workspace.remove(await locate(path, false)),
  }
}

const isThere = (workspace: Workspace, path: string): Promise<boolean> =>
  workspace.read(path, { bytesMax: Number.MAX_SAFE_INTEGER }).then(
    () => true,
    () => false,
  )
