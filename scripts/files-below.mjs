// Lists the files of a folder and of the folders in it.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the paths of the files below `folder`, with slashes. `except` has names in `folder` itself that are passed over. */
export const filesBelow = (folder, except = []) =>
  readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !except.includes(name))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name)).map((path) => `${entry.name}/${path}`) : entry.name))
