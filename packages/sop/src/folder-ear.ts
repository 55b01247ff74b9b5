/** Hears of changes in a folder and in the folders in it. */
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'

/** A folder that has gone, or a link that leads nowhere: there is nothing to hear. */
const NOTHING_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** Listens from when it is made until it is closed. */
export class FolderEar {
  readonly #watchers: FSWatcher[] = []
  readonly #heard = new AbortController()
  /** False if something cannot be listened to: there is no such folder, or no more watches are to be had. */
  readonly isComplete: boolean
  /** Changes so far. */
  count = 0

  constructor(folder: string) {
    this.isComplete = this.#listenTo(folder)
  }

  /** Aborts at the first change. */
  get heard(): AbortSignal {
    return this.#heard.signal
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  #listenTo(folder: string): boolean {
    try {
      this.#watch(folder)
      const entries = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      return entries.map(({ name }) => this.#watchPart(join(folder, name))).every(Boolean)
    } catch {
      return false
    }
  }

  #watchPart(folder: string): boolean {
    try {
      this.#watch(folder)
      return true
    } catch (error) {
      return NOTHING_THERE.has((error as NodeJS.ErrnoException).code ?? '')
    }
  }

  #watch(folder: string): void {
    const notice = () => {
      this.count += 1
      this.#heard.abort()
    }
    this.#watchers.push(watch(folder, { persistent: false }).on('change', notice).on('error', notice))
  }
}
