/** The temporary folders of the suite. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** In memory, for thousands of short-lived states. Libraries go elsewhere, because this folder often forbids running them. */
const MEMORY = '/dev/shm'

/** The folders; `remove` deletes them. */
export interface ScratchFolders {
  readonly libraries: string
  readonly states: string
  remove(): void
}

/** Creates the folders. */
export function makeScratchFolders(): ScratchFolders {
  const libraries = mkdtempSync(join(tmpdir(), 'disk-'))
  const states = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'disk-'))
  return {
    libraries,
    states,
    remove() {
      for (const folder of [libraries, states]) rmSync(folder, { recursive: true })
    },
  }
}
