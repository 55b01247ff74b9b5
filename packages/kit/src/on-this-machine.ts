/** Finds the programs and packages that a feature needs on this machine, and describes how to install missing ones. */
import { accessSync, constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, isAbsolute, join } from 'node:path'

/** Returns the folders that may contain programs: the daemon's own PATH, then the usual folders. */
export const programFolders = (): readonly string[] => [
  ...(process.env.PATH ?? '').split(delimiter).filter((folder) => isAbsolute(folder)),
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
]

export const hasProgram = (name: string): boolean => programFolders().some((folder) => isExecutable(join(folder, name)))

/** Returns the path of a program, looked up in `programFolders`; undefined when it is not installed. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const folder of programFolders()) {
    const path = join(folder, name)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The command that installs an optional npm package where a bundle or this repository finds it. */
export const installPackage = (name: string): string => `install it next to Sluice: npm install ${name}`

/** Says that optional npm packages are missing; `undefined` where all are there. `from` is `import.meta.url` of the asking module. */
export function missingPackages(names: readonly string[], from: string): string | undefined {
  const { resolve } = createRequire(from)
  const missing = names.filter((name) => {
    try {
      resolve(name)
      return false
    } catch {
      return true
    }
  })
  if (missing.length === 0) return undefined
  const [first = '', ...more] = missing
  if (more.length === 0) return `the package ${first} is not installed; ${installPackage(first)}`
  return `the packages ${missing.join(', ')} are not installed; install them next to Sluice: npm install ${missing.join(' ')}`
}
