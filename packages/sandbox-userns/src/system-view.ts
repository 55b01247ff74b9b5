/** What a confined command sees of the system: programs and libraries, and of /etc only what is no secret. */
import { existsSync } from 'node:fs'
import { cp, lstat, mkdir, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PROGRAM_FOLDERS, PUBLIC_ETC } from '@sluice/sandbox-common'

/** What changes while the daemon runs, and matters where there is a network. */
const LIVE_ETC = ['/etc/resolv.conf', '/etc/hosts']

export interface SystemView {
  /** Options of bubblewrap that show programs, libraries and /etc. */
  readonly system: readonly string[]
  /** Those that show what names and addresses are, where there is a network. */
  readonly names: readonly string[]
  /** Covered by an empty folder. */
  readonly hidden: readonly string[]
}

/** Copies what is public of /etc below `folder`: one folder to show, where each file by itself costs more than all the rest. */
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

/** Links stay what they are, but for one that leads out of what is shown. */
async function copy(from: string, to: string): Promise<void> {
  const real = await realpath(from).catch(() => undefined)
  if (real === undefined) return
  await mkdir(dirname(to), { recursive: true })
  const options = { recursive: true, verbatimSymlinks: true } as const
  // what not even we may read is left out
  await cp(isShown(real) ? from : real, to, options).catch(() => undefined)
}

async function show(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isSymbolicLink()) return ['--symlink', await readlink(path), path]
  const isEmpty = !found?.isDirectory() || (await readdir(path)).length === 0
  return isEmpty ? [] : ['--ro-bind', path, path]
}

const isShown = (path: string): boolean => PROGRAM_FOLDERS.some((folder) => path.startsWith(`${folder}/`))
