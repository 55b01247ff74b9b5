/** Downloads Debian packages and unpacks them into a folder of the user. It installs nothing and does not need root. */
import { execFile } from 'node:child_process'
import { glob, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Which packages to unpack. */
export interface UnpackOptions {
  /** The packages to download, out of those an installation would add; default: all of them. */
  readonly only?: RegExp
  /** Debian's name of another architecture; then no package of this machine counts as installed. */
  readonly architecture?: string
}

const DOWNLOAD_MS_MAX = 300_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** Follows existing links to folders; `dpkg-deb -x` would replace such a link by a folder. */
const UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink'
const run = promisify(execFile)

/** A path in the user's cache for files that tests download. */
export const cacheFolder = (...path: string[]): string => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice', ...path)

/** Release and architecture of this system for file names, because packages of one release do not fit another. */
export async function releaseName(): Promise<string> {
  const release = /^VERSION_ID="?([^"\n]+)/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1] ?? 'unknown'
  return `${release}-${process.arch}`
}

/**
 * Unpacks the packages and their missing dependencies into an existing folder. Throws without apt, without a network, or without
 * these packages.
 */
export async function unpackPackages(folder: string, packages: readonly string[], options: UnpackOptions = {}): Promise<void> {
  const { only = /^/, architecture } = options
  if (architecture !== undefined) await downloadByFreshLists(folder, packages, only, architecture)
  // The package lists of this machine may be old or missing; then download fresh lists.
  else await downloadInto(folder, packages, only).catch(() => downloadByFreshLists(folder, packages, only))
  for await (const file of glob('*.deb', { cwd: folder })) {
    await run('sh', ['-c', UNPACK, 'unpack', file], { cwd: folder })
    await rm(join(folder, file))
  }
}

async function downloadInto(folder: string, packages: readonly string[], only: RegExp, options: readonly string[] = []): Promise<void> {
  const simulated = ['install', '--simulate', '--reinstall', '--no-install-recommends', ...packages]
  const { stdout } = await run('apt-get', [...options, ...simulated], { maxBuffer: OUTPUT_BYTES_MAX })
  const missing = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name = '']) => name).filter((name) => only.test(name))
  await run('apt-get', [...options, '-o', 'APT::Sandbox::User=root', 'download', ...missing], { cwd: folder, timeout: DOWNLOAD_MS_MAX })
}

/** Uses a temporary copy of the package lists, so that apt's own lists on this machine stay unchanged. */
async function downloadByFreshLists(folder: string, packages: readonly string[], only: RegExp, architecture?: string): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), 'sluice-apt-'))
  try {
    await mkdir(join(home, 'lists/partial'), { recursive: true })
    await mkdir(join(home, 'cache/archives/partial'), { recursive: true })
    const settings = [`Dir::State::lists=${home}/lists`, `Dir::Cache=${home}/cache`, 'APT::Sandbox::User=root']
    if (architecture !== undefined)
      settings.push('Dir::State::status=/dev/null', `APT::Architecture=${architecture}`, `APT::Architectures=${architecture}`)
    const options = settings.flatMap((setting) => ['-o', setting])
    await run('apt-get', [...options, 'update'], { timeout: DOWNLOAD_MS_MAX })
    await downloadInto(folder, packages, only, options)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}
