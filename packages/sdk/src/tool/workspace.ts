/** The path gate: tools open files only through it, and it refuses `..`, symbolic links and hard links that leave the workspace. */
import type { FileCaller, ReceivedFile } from '../channel/file-owner.ts'

export interface WorkspaceEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  /** The size of a file in bytes; 0 for other entries. */
  readonly bytes: number
  readonly modifiedAtMs: number
}

/**
 * Files in the workspace. Paths are relative to it; an absolute path inside it is accepted. A path that leaves the workspace at any
 * component, or that the policy forbids, throws `forbidden`, and nothing is created. A missing file throws `not_found`, and a file
 * over a limit throws `too_large`.
 */
export interface Workspace {
  readonly root: string
  read(path: string, options: { readonly bytesMax: number }): Promise<Uint8Array>
  /** Opens a file that is too large for memory; a file over `bytesMax` is refused. */
  open(path: string, options: { readonly bytesMax: number }): Promise<OpenFile>
  /** Replaces the whole file atomically, creates missing folders, and resolves when the file is on stable storage. */
  write(path: string, bytes: Uint8Array): Promise<void>
  /** Lists a folder, sorted by name, with at most `limit` entries. */
  list(path: string, options: { readonly limit: number }): Promise<{ readonly entries: readonly WorkspaceEntry[]; readonly more: boolean }>
  remove(path: string): Promise<void>
  /** The folders outside of `root` that a command of this caller may read, without links. `attachments/` leads to them. */
  readonly shown?: readonly string[]
}

/** The share that the files of a caller count for. */
export interface FileShare {
  /** The other owners that share the room of this one: the linked accounts of a person. */
  readonly others?: readonly string[]
  /** The pool that the owner belongs to. */
  readonly pool?: string | undefined
  /** Absent: no limit, and nothing is counted. */
  readonly limit?: FileLimit | undefined
}

/** The most that an owner may keep. Attachments come first: the oldest results are removed when a further file has no room. */
export interface FileLimit {
  readonly max: KeptBytes
  /** Called before a file is written, with the bytes that this file and the attachments would take without results. Throws to refuse the file. */
  check(kept: KeptBytes): void
}

/** The caller for whom a workspace is used. */
export interface FileViewer extends FileShare {
  /** The person whose files are opened; absent for the daemon itself. */
  readonly caller?: FileCaller
  /** Called with the path of each file that is opened or written, relative to the workspace and without `.` and empty names. */
  used?(path: string): void
}

/** The bytes of an owner, with the owners that share its room. `Infinity` as a limit: none. */
export interface KeptBytes {
  readonly own: number
  /** The bytes of all owners of the pool together; 0 without a pool. */
  readonly pool: number
}

export interface NewAttachment extends FileShare {
  /** As `fileOwner` returns it. */
  readonly owner: string
  readonly bytes: Uint8Array | ReceivedFile
  readonly extension: string
}

/** The files of an agent, of all owners. */
export interface AgentWorkspace extends Workspace {
  /** Returns the same files for one caller, to whom the files of others are `forbidden`. */
  as(viewer: FileViewer): Workspace
  /** Saves an attachment below `attachments/<owner>/` and resolves to its path. A file that is there already is not counted again. */
  attach(attachment: NewAttachment): Promise<string>
}

/** A file that is read piece by piece. */
export interface OpenFile extends AsyncDisposable {
  /** Its size when it was opened. */
  readonly bytes: number
  readonly modifiedAtMs: number
  /** Resolves to the next piece, and to an empty one after `bytes`. Throws `conflict` if the file was shortened meanwhile. */
  read(): Promise<Uint8Array>
}
