/** `sluice service install`, `status` and `uninstall`: the daemon as a service of systemd or launchd (docs/guides/systemd.md). */
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { probeDaemon } from '../probe-daemon.ts'
import { findServiceManager } from '../service/find-service-manager.ts'
import { type ServiceManager, type ServiceStatus, writeChanged } from '../service/service-manager.ts'
import { chosenScope, planService, type Scope, serviceContext } from '../service/service-plan.ts'

/** Writes the files of the service, puts them in force, and starts it. With `--print` it prints the files and does nothing else. */
export async function install(caller: CliContext): Promise<number> {
  const scope = chosenScope(caller)
  const context = serviceContext(caller, scope)
  const { out, options, json } = context
  const manager = await findServiceManager(context)
  const plan = await planService(context, scope)
  const files = manager.files(plan)
  if (options.print === true) {
    if (json) out.json(files)
    else for (const { path, text } of files) out.print(`# ${path}\n${text}`)
    return 0
  }
  requireRights(scope)
  await refuseOtherDaemon(context, manager, scope)
  for (const file of files) await writeChanged(file)
  const start = options['no-start'] !== true
  await manager.install(plan, { start })
  if (json) out.json({ manager: manager.name, scope, files: files.map(({ path }) => path), data_dir: plan.dataDir, started: start })
  else {
    for (const { path } of files) out.print(`wrote ${path}`)
    out.print(start ? `started; its log: ${manager.logCommand(scope)}` : 'not started')
    if (scope === 'user' && manager.name === 'systemd')
      out.print("it runs while you are logged in; to run it always: 'loginctl enable-linger'")
  }
  return 0
}

/** Exits with 1 if the service does not run. */
export async function status(caller: CliContext): Promise<number> {
  const scope = chosenScope(caller)
  const context = serviceContext(caller, scope)
  const { out, json } = context
  const manager = await findServiceManager(context)
  const found = await manager.status(scope)
  const outdated = found.installed && (await isOutdated(context, manager, scope))
  if (json) out.json({ manager: manager.name, scope, ...found, outdated })
  else for (const line of statusLines(found, outdated)) out.hint(line)
  return found.running ? 0 : 1
}

/** Stops the service and removes its files; the data directory stays. */
export async function uninstall(caller: CliContext): Promise<number> {
  const scope = chosenScope(caller)
  const context = serviceContext(caller, scope)
  const { out, json, dataDir } = context
  requireRights(scope)
  const removed = await (await findServiceManager(context)).uninstall(scope)
  if (json) out.json({ removed, data_dir: dataDir })
  else out.print(removed ? `removed the service; its data stay in ${dataDir}` : 'no service is installed')
  return 0
}

function requireRights(scope: Scope): void {
  if (scope === 'system' && process.getuid?.() !== 0)
    throw new AppError('forbidden', 'A system service needs root: call this command with sudo, or use --scope user.')
}

/** A daemon that was started by hand holds the port and the data directory, so the service could not start. */
async function refuseOtherDaemon(context: CliContext, manager: ServiceManager, scope: Scope): Promise<void> {
  const daemon = await probeDaemon(context)
  if (!daemon.running || (await manager.status(scope)).running) return
  throw new AppError('conflict', `A daemon that is no service uses ${context.dataDir} (process ${daemon.pid}): stop it first.`)
}

/** Whether `install` would write other files, for example because the port or the sandbox has changed. */
async function isOutdated(context: CliContext, manager: ServiceManager, scope: Scope): Promise<boolean> {
  const { readFile } = await import('node:fs/promises')
  for (const { path, text } of manager.files(await planService(context, scope)))
    if ((await readFile(path, 'utf8').catch(() => undefined)) !== text) return true
  return false
}

function statusLines({ installed, state, enabled, pid, restarts }: ServiceStatus, outdated: boolean): string[] {
  if (!installed) return ["no service is installed: 'sluice service install'"]
  return [
    `state:     ${state}${pid === null ? '' : `, process ${pid}`}`,
    `at start:  ${enabled ? 'yes' : 'no'}`,
    ...(restarts === null ? [] : [`restarts:  ${restarts}`]),
    ...(outdated ? ["outdated:  the configuration needs another service: run 'sluice service install' again"] : []),
  ]
}
