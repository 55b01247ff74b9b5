/** Finds the service manager of this machine: systemd on Linux, launchd on macOS. */
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import type { ServiceManager } from './service-manager.ts'

/** Returns the manager of this machine. Throws `unavailable` on a machine without one that Sluice supports. */
export async function findServiceManager(context: CliContext, platform: NodeJS.Platform = process.platform): Promise<ServiceManager> {
  if (platform === 'linux') return (await import('./systemd.ts')).systemd(context)
  if (platform === 'darwin') return (await import('./launchd.ts')).launchd(context)
  throw new AppError(
    'unavailable',
    `'sluice service' knows systemd and launchd, and this machine has neither: start 'sluice daemon' with the tools of ${platform}.`,
  )
}
