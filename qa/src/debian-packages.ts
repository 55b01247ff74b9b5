/** Debian's packages, downloaded and unpacked into a folder of the user's: nothing is installed, and nobody has to be root. */
import { execFile } from 'node:child_process'
import { glob, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface UnpackOptions {
  /** Which of the packages that an installation would add are wanted; absent: all of them. */
  readonly only?: RegExp
  /** Debian's name of another architecture: then nothing of this machine is taken for installed. */
  readonly architecture?: string
}

const DOWNLOAD_MS_MAX = 300_000
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024
/** A folder of the package goes where a link of that name leads: `dpkg-deb -x` would put it in the link's place. */
const UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar -x --keep-directory-symlink'
const run = promisify(execFile)

/** Where what tests fetch is kept. */
export const cacheFolder = (...path: string[]): string => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice', ...path)

/** Of this system, as a part of a file's name: packages of one release are of no use in another. */
export async function releaseName(): Promise<string> {
  const release = /^VERSION_ID="?([^"\n]+)/m.exec(await readFile('/etc/os-release', 'utf8'))?.[1] ?? 'unknown'
  return `${release}-${process.arch}`
}

/**
 * Unpacks the packages, and what they depend on and this machine lacks, into a folder that exists. Throws when there is no
 * apt, no network, or no such package.
 */
export async function unpackPackages(folder: string, packages: readonly string[], options: UnpackOptions = {}): Promise<void> {
  const { only = /^/, architecture } = options
  if (architecture !== undefined) await downloadByFreshLists(folder, packages, only, architecture)
  // Where the lists of this machine are old or missing, lists of our own are asked.
  else await downloadInto(folder, packages, only).catch(() => downloadByFreshLists(folder, packages, only))
  for await (const file of glob('*.deb', { cwd: folder })) {
    await run('sh', ['-c', UNPACK, 'unpack', file], { cwd: folder })
    await rm(join(folder, file))
  }
}

async function downloadInto(folder: string, packages: readonly string[], only: RegExp, options: readonly string[] = []): Promise<void> {
  const simulated = ['install', '--simulate', '--reinstall', '--no-install-recommends', ...packages]
  const { stdout } = await run('apt-get', [...options, ...simulated], { maxBuffer: OUTPUT_BYTES_MAX })
  const lacking = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name = '']) => name).filter((name) => only.test(name))
  await run('apt-get', [...options, '-o', 'APT::Sandbox::User=root', 'download', ...lacking], { cwd: folder, timeout: DOWNLOAD_MS_MAX })
}

/** The lists are kept for as long as they are needed: they are no one else's, whom they could be in the way of. */
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
