/** Finds programs for tests on PATH, or unpacks them from Debian's packages into the user's cache. It installs nothing. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, glob } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder, releaseName, unpackPackages } from './debian-packages.ts'
import { onceAndWhole } from './once-and-whole.ts'

/** A program and how to run it. */
export interface DebianProgram {
  /** The absolute path. */
  readonly path: string
  /** Variables to add to the environment of the program. */
  readonly env: Readonly<Record<string, string>>
  /** The folder its packages were unpacked into; `/` if it is installed. */
  readonly root: string
}

/** The reason why a program is not available. */
export interface MissingProgram {
  readonly missing: string
}

/** A program and the packages that contain it. */
export interface WantedProgram {
  /** The packages that contain the program; missing dependencies are added. */
  readonly packages: readonly string[]
  /** The path of the program in its package, such as `usr/sbin/mosquitto`. */
  readonly program: string
}

const run = promisify(execFile)

/** Finds or downloads the program. Several processes may call it at once. */
export async function debianProgram({ packages, program }: WantedProgram): Promise<DebianProgram | MissingProgram> {
  const installed = await installedProgram(program)
  if (installed) return installed
  if (process.platform !== 'linux') return { missing: `${basename(program)} is not installed` }
  try {
    const root = await unpacked(packages)
    const path = join(root, program)
    await access(path, constants.X_OK)
    const env = { LD_LIBRARY_PATH: await libraryPath(root) }
    const { stdout } = await run('ldd', [path], { env: { ...process.env, ...env } })
    const missing = [...stdout.matchAll(/(\S+) => not found/g)].map(([, library]) => library)
    return missing.length > 0 ? { missing: `${program} needs libraries that are missing: ${missing.join(', ')}` } : { path, env, root }
  } catch (error) {
    const [why] = (error instanceof Error ? error.message : String(error)).trim().split('\n').slice(-1)
    return { missing: `${basename(program)} is not installed and Debian's package is not available: ${why}` }
  }
}

/** Finds an installed program and downloads nothing. */
export async function installedProgram(program: string): Promise<DebianProgram | undefined> {
  const path = await onPath(basename(program))
  return path === undefined ? undefined : { path, env: {}, root: '/' }
}

async function onPath(name: string): Promise<string | undefined> {
  // Folders of daemons are not on every user's PATH.
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin']) {
    const path = join(folder, name)
    if (
      folder !== '' &&
      (await access(path, constants.X_OK).then(
        () => true,
        () => false,
      ))
    )
      return path
  }
  return undefined
}

/** The folder with the unpacked packages; the first caller creates it. */
async function unpacked(packages: readonly string[]): Promise<string> {
  const folder = cacheFolder('dev/debian', `${packages.join('+')}-${await releaseName()}`)
  await onceAndWhole(folder, (draft) => unpackPackages(draft, packages))
  return folder
}

async function libraryPath(root: string): Promise<string> {
  const folders = new Set<string>()
  for await (const file of glob(['lib/**/*.so*', 'usr/lib/**/*.so*'], { cwd: root })) folders.add(join(root, dirname(file)))
  return [...folders, process.env.LD_LIBRARY_PATH ?? ''].filter((folder) => folder !== '').join(delimiter)
}
