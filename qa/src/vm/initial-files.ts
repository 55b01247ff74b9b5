/** Builds the kernel's initial file system: busybox, the modules for the host's files, our scripts, and the job. */
import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type ArchiveEntry, createArchive } from './cpio.ts'
import { type Kernel, moduleFiles } from './guest-packages.ts'

/** The command of the guest and the setup it needs. */
export interface Job {
  /** A shell command. */
  readonly command: string
  /** The working directory of the command. */
  readonly folder: string
  /** Arguments for `modprobe` in order, such as `i2c-stub chip_addr=0x50`; a path is loaded with `insmod`. */
  readonly modules: readonly string[]
  readonly udev: boolean
  /** True: systemd runs the command as a service. */
  readonly systemd: boolean
  readonly env: Readonly<Record<string, string>>
  readonly timeoutSecs: number
}

const FIRST_MODULES = ['virtio_pci', '9pnet_virtio', '9p', 'overlay', 'virtio_console', 'virtio_rng']
const SCRIPTS = join(import.meta.dirname, 'guest')

/** Returns the archive for QEMU's `-initrd`. */
export async function initialFiles(kernel: Kernel, packages: string, job: Job): Promise<Buffer> {
  const modules = await moduleFiles(kernel, FIRST_MODULES)
  const entries: ArchiveEntry[] = [
    { path: 'init', bytes: await readFile(join(SCRIPTS, 'first.sh')), executable: true },
    { path: 'bin' },
    { path: 'bin/busybox', bytes: await readFile(join(packages, 'bin/busybox')), executable: true },
    { path: 'modules' },
    { path: 'modules/order', bytes: text(modules.map((file) => `${plainName(file)}\n`).join('')) },
  ]
  for (const file of modules) entries.push({ path: `modules/${plainName(file)}`, bytes: await readModule(join(kernel.modules, file)) })
  entries.push(
    { path: 'job' },
    { path: 'job/second.sh', bytes: await readFile(join(SCRIPTS, 'second.sh')) },
    { path: 'job/third.sh', bytes: await readFile(join(SCRIPTS, 'third.sh')) },
    { path: 'job/settings', bytes: text(settings(kernel, job)) },
    { path: 'job/modules', bytes: text(`${['set -e', ...job.modules.map(loading)].join('\n')}\n`) },
    { path: 'job/command', bytes: text(`${job.command}\n`) },
  )
  return createArchive(entries)
}

/** Quotes any text as one word for the shell. */
export const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

function settings({ modules }: Kernel, { folder, udev, systemd, env, timeoutSecs }: Job): string {
  const values = {
    VM_MODULES: modules,
    VM_FOLDER: folder,
    VM_UDEV: udev ? '1' : '0',
    VM_SYSTEMD: systemd ? '1' : '0',
    VM_TIMEOUT_SECS: String(timeoutSecs),
  }
  const lines = Object.entries(values).map(([name, value]) => `${name}=${quote(value)}\n`)
  return [...lines, ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}\n`)].join('')
}

const loading = (module: string): string =>
  `${module.startsWith('/') ? 'insmod' : 'modprobe'} ${module.split(' ').filter(Boolean).map(quote).join(' ')}`

const plainName = (file: string): string => basename(file).replace(/\.(?:xz|zst|gz)$/, '')

/** Reads a module; newer packages compress them. */
async function readModule(path: string): Promise<Buffer> {
  if (path.endsWith('.xz')) return execFileSync('xz', ['--decompress', '--stdout', path], { maxBuffer: 64 * 1024 * 1024 })
  return readFile(path)
}

const text = (value: string): Buffer => Buffer.from(value)
