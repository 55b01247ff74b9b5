/** Finds the programs and packages that a feature needs on this machine, and describes how to install missing ones. */
import { accessSync, constants, existsSync } from 'node:fs'
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

/** Says how to install optional npm packages at the versions that Sluice was tested with. */
export const installPackage = (...names: readonly string[]): string => `run: sluice native install ${names.join(' ')}`

/** Says that optional npm packages are missing; `undefined` where all are there. `from` is `import.meta.url` of the asking module. */
export function missingPackages(names: readonly string[], from: string): string | undefined {
  const { resolve } = createRequire(from)
  const missing = names.flatMap((name) => {
    const problem = problemOf(name, resolve)
    return problem ? [{ name, problem }] : []
  })
  if (missing.length === 0) return undefined
  const list = missing.map(({ name }) => name)
  const problem = missing.every((one) => one.problem === 'not compiled') ? 'not compiled' : 'not installed'
  const subject = list.length === 1 ? `the package ${list[0]} is` : `the packages ${list.join(', ')} are`
  return `${subject} ${problem}; ${installPackage(...list)}`
}

function problemOf(name: string, resolve: (name: string) => string): 'not installed' | 'not compiled' | undefined {
  try {
    return isCompiled(packageFolder(name, resolve(name))) ? undefined : 'not compiled'
  } catch {
    return 'not installed'
  }
}

/** Returns the folder of a package, given the path of one of its files. */
function packageFolder(name: string, file: string): string {
  const inside = join('node_modules', ...name.split('/'))
  return file.slice(0, file.lastIndexOf(inside) + inside.length)
}

/** Returns false for a package that is compiled at its installation, when that has not happened: npm may skip install scripts. */
const isCompiled = (folder: string): boolean =>
  !existsSync(join(folder, 'binding.gyp')) || existsSync(join(folder, 'prebuilds')) || existsSync(join(folder, 'build', 'Release'))
