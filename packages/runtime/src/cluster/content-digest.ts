/** The digest of the files in some folders, for nodes that have copies of them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A folder with more files and folders has no digest. */
const ENTRIES_MAX = 50_000
/** Files in deeper folders do not count. */
const DEPTH_MAX = 12

/** A folder, with the name that it has in the digest. */
export interface DigestedFolder {
  readonly name: string
  readonly path: string
}

export interface ChosenFiles {
  /** Chooses files by their paths below a folder; default: all. */
  readonly counts?: (path: string) => boolean
  /** How many folders deep files count: 1 for those in the folders of the folder itself; default: 12. */
  readonly depth?: number
}

interface KnownFile {
  /** Changes when the file does. */
  readonly stamp: string
  readonly sha256: string
}

/** Remembers the digests of files that have not changed, so that a later look only asks for their sizes and times. */
export class ContentDigest {
  #known: ReadonlyMap<string, KnownFile> = new Map()
  /** Counts the files and folders that were looked at, over all calls of `of`. */
  steps = 0
  readonly #entriesMax: number

  constructor(entriesMax = ENTRIES_MAX) {
    this.#entriesMax = entriesMax
  }

  /**
   * Resolves to the SHA-256 of the names and contents of the files, in hexadecimal, without those whose names begin with a dot. A missing
   * folder is like an empty one. Rejects when something cannot be read, and for too many files.
   */
  async of(folders: readonly DigestedFolder[], { counts = () => true, depth = DEPTH_MAX }: ChosenFiles = {}): Promise<string> {
    const known = new Map<string, KnownFile>()
    const lines: string[] = []
    const stepsMax = this.steps + this.#entriesMax
    const step = (): void => {
      if (this.steps++ >= stepsMax) throw new Error(`there are more than ${this.#entriesMax} files and folders`)
    }
    for (const { name, path } of folders) {
      for await (const file of filesIn(path, depth, step)) {
        if (!counts(file)) continue
        const digest = await this.#digestOf(join(path, file))
        known.set(join(path, file), digest)
        lines.push(JSON.stringify([name, file, digest.sha256]))
      }
    }
    this.#known = known
    return createHash('sha256').update(lines.toSorted().join('\n')).digest('hex')
  }

  async #digestOf(file: string): Promise<KnownFile> {
    const { size, mtimeMs, ctimeMs, ino } = await stat(file)
    const stamp = [size, mtimeMs, ctimeMs, ino].join()
    const known = this.#known.get(file)
    if (known?.stamp === stamp) return known
    const hash = createHash('sha256')
    await pipeline(createReadStream(file), hash)
    return { stamp, sha256: hash.digest('hex') }
  }
}

/** Lists the paths of files below a folder, and follows links. `step` is called for each entry. */
async function* filesIn(root: string, depth: number, step: () => void, below = ''): AsyncGenerator<string> {
  for (const name of await namesIn(join(root, below))) {
    if (name.startsWith('.')) continue
    step()
    const path = below === '' ? name : `${below}/${name}`
    // A link that leads nowhere, and a file that was deleted meanwhile, are left out.
    const stats = await stat(join(root, path)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (stats?.isDirectory()) {
      if (depth > 0) yield* filesIn(root, depth - 1, step, path)
    } else if (stats?.isFile()) yield path
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
