/** Programs from Debian's packages for tests, without installing anything: from PATH, or unpacked into a cache of the user. */
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, glob } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder, releaseName, unpackPackages } from './debian-packages.ts'
import { onceAndWhole } from './once-and-whole.ts'

export interface DebianProgram {
  /** Absolute. */
  readonly path: string
  /** What its environment needs beside ours. */
  readonly env: Readonly<Record<string, string>>
  /** The root its packages were unpacked below; `/` where it is installed. */
  readonly root: string
}

/** Why there is no such program, as the end of a sentence. */
export interface MissingProgram {
  readonly missing: string
}

export interface WantedProgram {
  /** Those that have it; what they depend on and this machine lacks comes along. */
  readonly packages: readonly string[]
  /** Where it is in them: `usr/sbin/mosquitto`. */
  readonly program: string
}

const run = promisify(execFile)

/** Safe to call from many processes at once: what they share appears whole or not at all. */
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
    const lacking = [...stdout.matchAll(/(\S+) => not found/g)].map(([, library]) => library)
    return lacking.length > 0 ? { missing: `${program} lacks ${lacking.join(', ')}` } : { path, env, root }
  } catch (error) {
    const [why] = (error instanceof Error ? error.message : String(error)).trim().split('\n').slice(-1)
    return { missing: `${basename(program)} is not installed and Debian's package cannot be had: ${why}` }
  }
}

/** Only where it is installed; nothing is fetched. */
export async function installedProgram(program: string): Promise<DebianProgram | undefined> {
  const path = await onPath(basename(program))
  return path === undefined ? undefined : { path, env: {}, root: '/' }
}

async function onPath(name: string): Promise<string | undefined> {
  // Daemons are not on the PATH of everybody.
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

/** The folder with the packages in it, made by the first who asks. */
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
