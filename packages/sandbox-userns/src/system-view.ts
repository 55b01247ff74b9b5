/** What a confined command sees of the system: programs and libraries, and of /etc only what is no secret. */
import { existsSync } from 'node:fs'
import { lstat, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { PUBLIC_ETC } from '@sluice/sdk'

/** Read-only; a link among them stays one. */
const FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store']

const KERNEL = ['/proc/sys', '/proc/sysrq-trigger', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/acpi', '/proc/scsi']

/** What of /proc sets the kernel. */
export const kernelSettings = (): readonly string[] => KERNEL.filter((path) => existsSync(path))

/** Options of bubblewrap that show it; read once, since it does not change while the daemon runs. */
export async function systemView(): Promise<readonly string[]> {
  const shown = [...FOLDERS, ...PUBLIC_ETC.map((name) => join('/etc', name))]
  return (await Promise.all(shown.map(show))).flat()
}

async function show(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (!found) return []
  if (!found.isSymbolicLink()) return ['--ro-bind', path, path]
  const target = await readlink(path)
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined) return []
  // a link to what is shown stays a link; what it names elsewhere, as in /run, is shown in its place
  return FOLDERS.some((folder) => real.startsWith(`${folder}/`) || real === folder)
    ? ['--symlink', target, path]
    : ['--ro-bind', real, path]
}
