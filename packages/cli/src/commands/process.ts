/** `sluice stop`, `restart` and `reload`: acts on the daemon of the data directory, or on the service that runs it. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReloadAnswer } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { notAnswering } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { askRunning, type DaemonProbe, isHeld, probeDaemon, type RunningDaemon } from '../probe-daemon.ts'
import { findServiceManager } from '../service/find-service-manager.ts'
import type { ServiceManager } from '../service/service-manager.ts'
import { type Scope, serviceContext } from '../service/service-plan.ts'

const LOOK_MS = 50
/** The time that a daemon which starts or stops has to answer or to end, and the time to answer again after a restart. An upgrade of a large database takes longer, and then the log says so. */
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
    if (isSeen(daemon)) return { context, daemon, service: daemon.running ? await serviceOf(context, daemon) : undefined }
    found ??= { context, daemon, service: undefined }
  }
  return found as Found
}

/** As `findDaemon`, but waits for a daemon that holds the data directory without an answer: it starts or stops. */
async function findSettled(caller: CliContext): Promise<Found> {
  const signal = caller.interrupted()
  for (const endMs = performance.now() + RESTART_MS_MAX; ; await sleep(LOOK_MS)) {
    const found = await findDaemon(caller)
    const isOver = performance.now() >= endMs || signal.aborted
    if (isOver || isSeen(found.daemon) || !isHeld(found.context.dataDir)) return found
  }
}

/** Whether the daemon has answered, also without its database. */
const isSeen = (daemon: DaemonProbe): boolean => daemon.running || daemon.health !== undefined

/** Throws `unavailable` if a daemon holds the data directory, with the reason for which it was not seen. */
function requireFree({ dataDir }: CliContext, daemon: DaemonProbe): void {
  if (!isHeld(dataDir)) return
  throw daemon.running ? notAnswering(dataDir) : new AppError('unavailable', daemon.reason)
}

/** Tells the daemon what to do; false if none listens any more. */
async function tell(context: CliContext, action: 'stop' | 'restart'): Promise<boolean> {
  const told = await askRunning(context, async (api) => {
    await api.post(`/api/process/${action}`)
    return true
  })
  return told ?? false
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
  const { context, daemon, service } = await (options.wait === true ? findSettled(caller) : findDaemon(caller))
  const show = (stopped: boolean, text: string): number => {
    if (json) out.json({ stopped, data_dir: context.dataDir })
    else out.hint(text)
    return 0
  }
  const free = (): number => {
    requireFree(context, daemon)
    return show(true, `no daemon runs on ${context.dataDir}`)
  }
  if (!isSeen(daemon)) return free()
  if (service) {
    requireRights(service, 'stop')
    await service.manager.stop(service.scope)
    return show(true, `stopped the service; 'sluice restart' or ${service.manager.name} starts it again`)
  }
  if (!(await tell(context, 'stop'))) return free()
  if (options.wait !== true) return show(false, 'the daemon stops; running turns have ten seconds to end')
  await untilReleased(context)
  return show(true, 'stopped')
}

/** Resolves once no daemon holds the data directory. */
async function untilReleased(context: CliContext): Promise<void> {
  const signal = context.interrupted()
  while (isHeld(context.dataDir)) {
    if (signal.aborted) throw new AppError('aborted', 'The daemon has not stopped yet')
    await sleep(LOOK_MS)
  }
}

export async function restart(caller: CliContext): Promise<number> {
  const { out, json } = caller
  const { context, daemon, service } = await findDaemon(caller)
  if (!daemon.running) {
    requireFree(context, daemon)
    throw new AppError(
      'unavailable',
      `${daemon.reason}. Start it as you have started it before: 'sluice daemon' runs it in the foreground, and 'sluice service install' as a service`,
    )
  }
  // A service gets another process, and begins it at a time of its own.
  const keepsProcess = service === undefined && isAlive(daemon.pid)
  if (service) {
    requireRights(service, 'restart')
    await service.manager.restart(service.scope)
  } else if (!(await tell(context, 'restart')))
    throw new AppError('unavailable', 'The daemon ended before it was told to restart; start it as you have started it before')
  const again = await untilRestarted(context, daemon, keepsProcess)
  if (json) out.json(again)
  else out.print(`restarted on ${again.url} (version ${again.version}, pid ${again.pid})`)
  return 0
}

async function untilRestarted(context: CliContext, before: RunningDaemon, keepsProcess: boolean): Promise<RunningDaemon> {
  const signal = context.interrupted()
  for (const endMs = performance.now() + RESTART_MS_MAX; performance.now() < endMs && !signal.aborted; await sleep(LOOK_MS)) {
    const daemon = await probeDaemon(context)
    if (daemon.running && daemon.started_at !== before.started_at) return daemon
    if (keepsProcess && !daemon.running && !isAlive(before.pid) && !isHeld(context.dataDir)) break
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
    requireFree(context, daemon)
    const reason = daemon.running ? `no daemon runs on ${context.dataDir}` : daemon.reason
    throw new AppError('unavailable', `${reason}; a daemon reads the configuration when it starts`)
  }
  const { sections, rebuilt } = answer
  if (json) out.json(answer)
  else if (sections.length === 0) out.print('the configuration is in force; nothing has changed')
  else out.print(`in force: ${sections.join(', ')}${rebuilt.length === 0 ? '' : `; built again: ${rebuilt.join(', ')}`}`)
  return 0
}
