/** Hears of changes in a folder and in the folders in it. */
import { type FSWatcher, watch } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { inTurns } from './in-turns.ts'

/** A folder that has gone, or a link that leads nowhere: there is nothing to hear. */
const NOTHING_THERE = new Set(['ENOENT', 'ENOTDIR', 'ELOOP'])

/** Folders that are listened to before anything else has a turn. */
const LISTENED_AT_ONCE = 200

/** Listens until it is closed. */
export class FolderEar {
  readonly #watchers: FSWatcher[] = []
  readonly #heard = new AbortController()
  #isComplete = false
  #isThere = true
  /** Changes so far. */
  count = 0

  /** Listens to all there is once it resolves. */
  static async to(folder: string): Promise<FolderEar> {
    const ear = new FolderEar()
    ear.#isComplete = await ear.#listenTo(folder)
    return ear
  }

  /** False if something cannot be listened to: there is no such folder, or no more watches are to be had. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** False: there was no such folder, and somebody has to look whether there is one now. */
  get isThere(): boolean {
    return this.#isThere
  }

  /** Aborts at the first change. */
  get heard(): AbortSignal {
    return this.#heard.signal
  }

  close(): void {
    for (const watcher of this.#watchers.splice(0)) watcher.close()
  }

  async #listenTo(folder: string): Promise<boolean> {
    try {
      this.#watch(folder)
      const entries = await readdir(folder, { withFileTypes: true })
      const folders = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      let isComplete = true
      await inTurns(folders, LISTENED_AT_ONCE, ({ name }) => {
        if (!this.#watchPart(join(folder, name))) isComplete = false
      })
      return isComplete
    } catch (error) {
      this.#isThere = !NOTHING_THERE.has((error as NodeJS.ErrnoException).code ?? '')
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
