/** The path gate: the only way from a path somebody names to a file (no `..`, symbolic link or hard link out). */

export interface WorkspaceEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'other'
  /** Of files; 0 otherwise. */
  readonly bytes: number
  readonly modifiedAtMs: number
}

/**
 * Files below the workspace. Paths are relative to it (an absolute path inside it is accepted). A path that leaves it, at
 * any component, by whatever way, or that the policy forbids, throws `forbidden`; nothing is created on the way out. What
 * is not there throws `not_found`; what is over a limit throws `too_large`.
 */
export interface Workspace {
  readonly root: string
  read(path: string, options: { readonly bytesMax: number }): Promise<Uint8Array>
  /** Replaces the file as a whole, atomically, making the folders it needs; it is on stable storage once this resolves. */
  write(path: string, bytes: Uint8Array): Promise<void>
  /** One folder, sorted by name, at most `limit` entries. */
  list(path: string, options: { readonly limit: number }): Promise<{ readonly entries: readonly WorkspaceEntry[]; readonly more: boolean }>
  remove(path: string): Promise<void>
}
