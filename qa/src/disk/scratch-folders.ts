/** Where the suite works, until it is disposed of. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Thousands of states are made and none has to last, but libraries are often not run from here. */
const MEMORY = '/dev/shm'

export interface ScratchFolders {
  readonly libraries: string
  readonly states: string
  remove(): void
}

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
