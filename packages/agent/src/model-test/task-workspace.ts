/** The workspace of a task, in memory: the tools of the agent read and change its files, and none of the operator's. */
import { AppError, type Workspace, type WorkspaceEntry } from '@sluice/sdk'

export interface TaskWorkspace extends Workspace {
  /** Returns the text of a file; undefined where the file does not exist. */
  text(path: string): string | undefined
}

const tidy = (path: string): string =>
  path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .join('/')

/** Paths are relative; `files` has no folders of its own. */
export function taskWorkspace(given: Readonly<Record<string, string>>): TaskWorkspace {
  const files = new Map(Object.entries(given).map(([path, text]) => [path, Buffer.from(text)]))
  const modifiedAtMs = 0
  const read = async (path: string, { bytesMax }: { readonly bytesMax: number }): Promise<Uint8Array> => {
    const bytes = files.get(tidy(path))
    if (!bytes) throw new AppError('not_found', `There is no file '${path}'`)
    if (bytes.length > bytesMax) throw new AppError('too_large', `'${path}' has ${bytes.length} bytes; at most ${bytesMax} are possible`)
    return bytes
  }
  return {
    root: '/',
    read,
    async open(path, options) {
      let bytes = await read(path, options)
      return {
        bytes: bytes.length,
        modifiedAtMs,
        async read() {
          const piece = bytes
          bytes = new Uint8Array()
          return piece
        },
        async [Symbol.asyncDispose]() {},
      }
    },
    async write(path, bytes) {
      files.set(tidy(path), Buffer.from(bytes))
    },
    async list(path, { limit }) {
      const folder = tidy(path)
      const prefix = folder === '' ? '' : `${folder}/`
      const found = new Map<string, WorkspaceEntry>()
      for (const [file, { length }] of files) {
        if (!file.startsWith(prefix)) continue
        const [name = '', ...below] = file.slice(prefix.length).split('/')
        const kind = below.length > 0 ? 'folder' : 'file'
        found.set(name, { name, kind, bytes: kind === 'file' ? length : 0, modifiedAtMs })
      }
      if (found.size === 0 && folder !== '') throw new AppError('not_found', `There is no folder '${path}'`)
      const entries = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
      return { entries: entries.slice(0, limit), more: entries.length > limit }
    },
    async remove(path) {
      if (!files.delete(tidy(path))) throw new AppError('not_found', `There is no file '${path}'`)
    },
    text: (path) => files.get(path)?.toString(),
  }
}
