/** `sluice stop`, `restart` and `reload`: acts on the daemon of the data directory, or on the service that runs it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReloadAnswer } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { shareDataDir } from '@sluice/store'
import type { CliContext } from '../context.ts'
import { askRunning, type DaemonProbe, probeDaemon, type RunningDaemon } from '../probe-daemon.ts'
import { findServiceManager } from '../service/find-service-manager.ts'
import type { ServiceManager } from '../service/service-manager.ts'
import { type Scope, serviceContext } from '../service/service-plan.ts'

const LOOK_MS = 50
/** The time that a daemon has to stop and to answer again. An upgrade of a large database takes longer, and then the log says so. */
const RESTART_MS_MAX = 120_000

/** The daemon that a command acts on, and the service that runs it. */
interface Found {
  readonly context: CliContext
  readonly daemon: DaemonProbe
  readonly service: { readonly manager: ServiceManager; readonly scope: Scope } | undefined
}

/** Finds the daemon of the data directory; for root, who names none, that of the service of the machine too. */
async function findDaemon(caller: CliContext): Promise<Found> {
  const contexts = process.getuid?.() === 0 ? [caller, serviceContext(caller, 'system')] : [caller]
  let found: Found | undefined
  for (const context of contexts) {
    const daemon = await probeDaemon(context)
    if (daemon.running || daemon.health !== undefined)
      return { context, daemon, service: daemon.running ? await serviceOf(context, daemon) : undefined }
    found ??= { context, daemon, service: undefined }
  }
  return found as Found
}

/** Returns the service whose process the daemon is; undefined for a daemon that was started in another way. */
async function serviceOf(context: CliContext, { pid }: RunningDaemon): Promise<Found['service']> {
  try {
    const manager = await findServiceManager(context)
    for (const scope of ['system', 'user'] as const) {
      const { installed, pid: ofService } = await manager.status(scope)
      if (installed && ofService === pid) return { manager, scope }
    }
  } catch {
    // This machine has no service manager, or it does not answer: no service runs the daemon.
  }
  return undefined
}

function requireRights({ scope }: NonNullable<Found['service']>, name: string): void {
  if (scope === 'system' && process.getuid?.() !== 0)
    throw new AppError('forbidden', `The daemon is a service of this machine, so this needs root: sudo sluice ${name}`)
}

export async function stop(caller: CliContext): Promise<number> {
  const { out, json, options } = caller
  const { context, daemon, service } = await findDaemon(caller)
  const show = (stopped: boolean, text: string): number => {
    if (json) out.json({ stopped, data_dir: context.dataDir })
    else out.hint(text)
    return 0
  }
  if (!daemon.running && daemon.health === undefined) {
    // A daemon that starts or stops holds the directory, and does not answer.
    if (options.wait === true) await untilReleased(context)
    return show(true, `no daemon runs on ${context.dataDir}`)
  }
  if (service) {
    requireRights(service, 'stop')
    await service.manager.stop(service.scope)
    return show(true, `stopped the service; 'sluice restart' or ${service.manager.name} starts it again`)
  }
  await askRunning(context, (api) => api.post('/api/process/stop'))
  if (options.wait !== true) return show(false, 'the daemon stops; running turns have ten seconds to end')
  await untilReleased(context)
  return show(true, 'stopped')
}

/** Resolves once no daemon holds the data directory. */
async function untilReleased(context: CliContext): Promise<void> {
  const signal = context.interrupted()
  for (;;) {
    const lock = shareDataDir(context.dataDir)
    if (lock) return lock.release()
    if (signal.aborted) throw new AppError('aborted', 'The daemon has not stopped yet')
    await sleep(LOOK_MS)
  }
}

export async function restart(caller: CliContext): Promise<number> {
  const { out, json } = caller
  const { context, daemon, service } = await findDaemon(caller)
  if (!daemon.running)
    throw new AppError(
      'unavailable',
      `${daemon.reason}. Start it as you have started it before: 'sluice daemon' runs it in the foreground, and 'sluice service install' as a service`,
    )
  if (service) {
    requireRights(service, 'restart')
    await service.manager.restart(service.scope)
  } else await askRunning(context, (api) => api.post('/api/process/restart'))
  const again = await untilRestarted(context, daemon)
  if (json) out.json(again)
  else out.print(`restarted on ${again.url} (version ${again.version}, pid ${again.pid})`)
  return 0
}

async function untilRestarted(context: CliContext, before: RunningDaemon): Promise<RunningDaemon> {
  const signal = context.interrupted()
  const wasSeen = isAlive(before.pid)
  for (const endMs = performance.now() + RESTART_MS_MAX; performance.now() < endMs && !signal.aborted; await sleep(LOOK_MS)) {
    const daemon = await probeDaemon(context)
    if (daemon.running && daemon.started_at !== before.started_at) return daemon
    // The process stays the same, unless a service manager starts another one.
    if (wasSeen && !daemon.running && !isAlive(before.pid) && shareDataDir(context.dataDir)?.release() !== undefined) break
  }
  throw new AppError('unavailable', "The daemon has not answered again; its log says why, and 'sluice status' shows its state")
}

/** Whether a process with this id exists here. A daemon in a container has an id of its own there. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export async function reload(caller: CliContext): Promise<number> {
  const { out, json } = caller
  const { context, daemon } = await findDaemon(caller)
  const answer = await askRunning(context, (api) => api.post<ReloadAnswer>('/api/process/reload'))
  if (!answer) {
    const reason = daemon.running ? `no daemon runs on ${context.dataDir}` : daemon.reason
    throw new AppError('unavailable', `${reason}; a daemon reads the configuration when it starts`)
  }
  const { sections, rebuilt } = answer
  if (json) out.json(answer)
  else if (sections.length === 0) out.print('the configuration is in force; nothing has changed')
  else out.print(`in force: ${sections.join(', ')}${rebuilt.length === 0 ? '' : `; built again: ${rebuilt.join(', ')}`}`)
  return 0
}
