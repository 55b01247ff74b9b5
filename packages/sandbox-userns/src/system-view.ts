/** The part of the system that a confined command sees: programs, libraries and the public files of /etc. */
import { existsSync } from 'node:fs'
import { cp, lstat, mkdir, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PROGRAM_FOLDERS, PUBLIC_ETC } from '@sluice/sandbox-common'

/** Files that may change while the daemon runs and that programs with a network need. */
const LIVE_ETC = ['/etc/resolv.conf', '/etc/hosts']

export interface SystemView {
  /** The bubblewrap options that show programs, libraries and /etc. */
  readonly system: readonly string[]
  /** The bubblewrap options that show the resolver's files to a command with a network. */
  readonly names: readonly string[]
  /** Paths to cover with an empty folder. */
  readonly hidden: readonly string[]
}

/** Copies the public files of /etc below `folder`, because mounting each of them takes longer than all other mounts together. */
export async function systemView(folder: string, dataDir: string): Promise<SystemView> {
  const etc = join(folder, 'etc')
  const data = await realpath(dataDir)
  await mkdir(etc, { recursive: true })
  await Promise.all(PUBLIC_ETC.map((name) => copy(join('/etc', name), join(etc, name))))
  return {
    system: [...(await Promise.all(PROGRAM_FOLDERS.map(show))).flat(), '--ro-bind', etc, '/etc'],
    names: LIVE_ETC.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]),
    hidden: isShown(data) ? [data] : [],
  }
}

/** Copies a link as a link, unless it leads out of the folders that the command sees. */
async function copy(from: string, to: string): Promise<void> {
  const real = await realpath(from).catch(() => undefined)
  if (real === undefined) return
  await mkdir(dirname(to), { recursive: true })
  const options = { recursive: true, verbatimSymlinks: true } as const
  // A file that the daemon may not read is left out.
  await cp(isShown(real) ? from : real, to, options).catch(() => undefined)
}

async function show(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isSymbolicLink()) return ['--symlink', await readlink(path), path]
  const isEmpty = !found?.isDirectory() || (await readdir(path)).length === 0
  return isEmpty ? [] : ['--ro-bind', path, path]
}

const isShown = (path: string): boolean => PROGRAM_FOLDERS.some((folder) => path.startsWith(`${folder}/`))
