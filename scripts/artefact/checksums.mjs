// The checksums of a build and of a release, in the form of `sha256sum`.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const CHECKSUMS = 'SHA256SUMS'

/** Returns the lines of `sha256sum` for the files of a folder, in the order of their names. */
export const checksums = (folder, files) =>
  files
    .toSorted()
    .map(
      (file) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, file)))
          .digest('hex')}  ${file}\n`,
    )
    .join('')
