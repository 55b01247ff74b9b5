/** Provides the parts of the machine from the user's cache: QEMU for the host; kernel, modules, udev and busybox for the guest. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cacheFolder, releaseName, unpackPackages } from '../debian-packages.ts'
import { debianProgram } from '../debian-program.ts'
import { onceAndWhole } from '../once-and-whole.ts'
import { unpackKernel } from './kernel-image.ts'

/** An unpacked kernel. */
export interface Kernel {
  /** The version that `uname -r` prints. */
  readonly version: string
  /** The folder `lib/modules/<version>`. */
  readonly modules: string
  /** The file that QEMU boots. */
  readonly image: string
}

/** QEMU and how to run it. */
export interface Qemu {
  readonly program: string
  readonly env: Readonly<Record<string, string>>
  /** The folders with QEMU's firmware. */
  readonly firmware: readonly string[]
}

const KERNEL_PACKAGE = 'linux-image-amd64'
const GUEST_PACKAGES = ['udev', 'kmod', 'busybox-static'] as const

/** Throws an error that says what is missing. */
export async function findQemu(architecture: 'x86_64' | 'aarch64' = 'x86_64'): Promise<Qemu> {
  const packages = [architecture === 'x86_64' ? 'qemu-system-x86' : 'qemu-system-arm']
  const found = await debianProgram({ packages, program: `usr/bin/qemu-system-${architecture}` })
  if ('missing' in found) throw new Error(found.missing)
  const share = (name: string): string => join(found.root, 'usr/share', name)
  return { program: found.path, env: found.env, firmware: [share('qemu'), share('seabios')] }
}

/** The folder whose files hide the host's files in the guest. */
export async function guestPackages(): Promise<string> {
  const folder = cacheFolder('vm', `guest-${GUEST_PACKAGES.join('+')}-${await releaseName()}`)
  await onceAndWhole(folder, async (draft) => {
    await linkAsHere(draft)
    await unpackPackages(draft, GUEST_PACKAGES)
  })
  return folder
}

/** The unpacked stock kernel of this Debian release. */
export async function guestKernel(packages: string): Promise<Kernel> {
  const folder = cacheFolder('vm', `kernel-${await releaseName()}`)
  await onceAndWhole(folder, async (draft) => {
    await linkAsHere(draft)
    await unpackPackages(draft, [KERNEL_PACKAGE], { only: /^linux-image-\d/ })
    const version = await versionIn(draft)
    const compressed = join(draft, 'boot', `vmlinuz-${version}`)
    const image = join(draft, 'boot/kernel')
    const kernel = unpackKernel(await readFile(compressed))
    await (kernel ? writeFile(image, kernel) : copyFile(compressed, image))
    await indexModules(packages, draft, version)
  })
  const version = await versionIn(folder)
  return { version, modules: join(folder, 'lib/modules', version), image: join(folder, 'boot/kernel') }
}

/** Writes the list of modules and their dependencies. */
export async function indexModules(packages: string, folder: string, version: string): Promise<void> {
  const env = { LD_LIBRARY_PATH: join(packages, 'usr/lib/x86_64-linux-gnu') }
  // kmod acts as depmod because of its argv[0]; the package's link of that name works only in the guest.
  const depmod = spawn(join(packages, 'bin/kmod'), ['-b', folder, version], { argv0: 'depmod', env, stdio: 'ignore' })
  const [code] = await once(depmod, 'close')
  if (code !== 0) throw new Error(`depmod ended with ${code}`)
}

/** The files of the modules and of their dependencies in the order of loading, relative to the module folder. */
export async function moduleFiles({ modules }: Pick<Kernel, 'modules'>, names: readonly string[]): Promise<readonly string[]> {
  const needs = new Map<string, string[]>()
  for (const line of (await readFile(join(modules, 'modules.dep'), 'utf8')).split('\n')) {
    const [file = '', rest = ''] = line.split(':')
    needs.set(moduleName(file), [...rest.trim().split(' ').filter(Boolean).toReversed(), file])
  }
  return [...new Set(names.flatMap((name) => needs.get(name.replaceAll('-', '_')) ?? []))]
}

const moduleName = (file: string): string => (file.split('/').at(-1) ?? '').replace(/\.ko.*$/, '').replaceAll('-', '_')

/** Copies the host's links such as /lib, because a folder of that name in an upper layer would hide the link's target. */
export async function linkAsHere(draft: string): Promise<void> {
  for (const name of ['bin', 'lib', 'sbin']) {
    if (!(await lstat(`/${name}`)).isSymbolicLink()) continue
    await mkdir(join(draft, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(draft, name))
  }
}

/** The version of the kernel whose modules are in the folder. */
export async function versionIn(folder: string): Promise<string> {
  const [version] = await readdir(join(folder, 'lib/modules'))
  if (version === undefined) throw new Error('the kernel package contains no modules')
  return version
}
