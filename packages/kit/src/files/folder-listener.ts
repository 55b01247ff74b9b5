/** Listens for changes in a folder and in the folders directly inside it. */
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { forEachInBatches } from '../queue/batches.ts'

/** The error codes of a folder that does not exist and of a link that leads nowhere. */
const ABSENT_CODES = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** The number of watches added before the event loop goes on. */
const BATCH_SIZE = 200

/** Watches a folder and its subfolders for changes. Create it with `open`. */
export class FolderListener {
  readonly #watchers: FSWatcher[] = []
  readonly #changed = new AbortController()
  #isComplete = false
  #isPresent = true
  /** The number of changes so far. */
  changeCount = 0

  /** Resolves once every change is noticed. Close the listener after use. */
  static async open(folder: string): Promise<FolderListener> {
    const listener = new FolderListener()
    listener.#isComplete = await listener.#watchAll(folder)
    return listener
  }

  /** False when something is not watched: the folder is absent, or the system has no watches left. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** False when the folder did not exist. Its creation is not noticed. */
  get isPresent(): boolean {
    return this.#isPresent
  }

  /** Aborts at the first change. */
  get changed(): AbortSignal {
    return this.#changed.signal
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  async #watchAll(folder: string): Promise<boolean> {
    try {
      this.#watch(folder)
      const entries = await readdir(folder, { withFileTypes: true })
      const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      let isComplete = true
      await forEachInBatches(folders, BATCH_SIZE, ({ name }) => {
        if (!this.#watchInner(join(folder, name))) isComplete = false
      })
      return isComplete
    } catch (error) {
      this.#isPresent = !ABSENT_CODES.has((error as NodeJS.ErrnoException).code ?? '')
      return false
    }
  }

  /** Returns false when the folder exists but cannot be watched. */
  #watchInner(folder: string): boolean {
    try {
      this.#watch(folder)
      return true
    } catch (error) {
      return ABSENT_CODES.has((error as NodeJS.ErrnoException).code ?? '')
    }
  }

  #watch(folder: string): void {
    const notice = () => {
      this.changeCount += 1
      this.#changed.abort()
    }
    this.#watchers.push(watch(folder, { persistent: false }).on('change', notice).on('error', notice))
  }
}
