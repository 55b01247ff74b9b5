/** The service manager systemd: units of the machine, or of the user who installs them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { homeOf, removeFiles, runProgram, type ServiceFile, type ServiceManager } from './service-manager.ts'
import type { Scope, ServicePlan } from './service-plan.ts'
import { SERVICE_UNIT, SOCKET_UNIT, serviceUnit, socketUnit, userLine } from './systemd-units.ts'

const SYSTEM_UNITS = '/etc/systemd/system'
const SYSTEM_USERS = '/etc/sysusers.d/sluice.conf'

const PROPERTIES = ['ActiveState', 'SubState', 'UnitFileState', 'MainPID', 'NRestarts'] as const

export function systemd(context: CliContext): ServiceManager {
  const { env } = context
  const folder = (scope: Scope): string =>
    scope === 'system' ? SYSTEM_UNITS : join(env.XDG_CONFIG_HOME || join(homeOf(context), '.config'), 'systemd', 'user')
  const paths = (scope: Scope): string[] => [SERVICE_UNIT, SOCKET_UNIT].map((name) => join(folder(scope), name))
  const systemctl = (scope: Scope, ...args: string[]): Promise<string> =>
    runProgram(context, ['systemctl', ...(scope === 'user' ? ['--user'] : []), ...args])

  return {
    name: 'systemd',
    files: (plan) => unitFiles(plan, folder(plan.scope)),
    async install({ scope }, { start }) {
      if (scope === 'system') await runProgram(context, ['systemd-sysusers', SYSTEM_USERS])
      await systemctl(scope, 'daemon-reload')
      await systemctl(scope, 'enable', SERVICE_UNIT, SOCKET_UNIT)
      if (!start) return
      // The socket can change its address only while the service does not use it.
      await systemctl(scope, 'stop', SERVICE_UNIT, SOCKET_UNIT)
      await systemctl(scope, 'start', SOCKET_UNIT, SERVICE_UNIT)
    },
    async status(scope) {
      const installed = existsSync(join(folder(scope), SERVICE_UNIT))
      const shown = properties(await systemctl(scope, 'show', SERVICE_UNIT, `--property=${PROPERTIES.join(',')}`))
      const pid = Number(shown.MainPID)
      return {
        installed,
        running: shown.ActiveState === 'active' || shown.ActiveState === 'reloading',
        enabled: shown.UnitFileState === 'enabled',
        state: `${shown.ActiveState} (${shown.SubState})`,
        pid: pid > 0 ? pid : null,
        restarts: installed ? Number(shown.NRestarts) : null,
      }
    },
    async restart(scope) {
      await systemctl(scope, 'restart', SERVICE_UNIT)
    },
    async stop(scope) {
      // The next connection to the socket would start the service again.
      await systemctl(scope, 'stop', SERVICE_UNIT, SOCKET_UNIT)
    },
    async uninstall(scope) {
      if (!paths(scope).some((path) => existsSync(path))) return false
      await systemctl(scope, 'disable', '--now', SERVICE_UNIT, SOCKET_UNIT)
      await removeFiles([...paths(scope), ...(scope === 'system' ? [SYSTEM_USERS] : [])])
      await systemctl(scope, 'daemon-reload')
      return true
    },
    logCommand: (scope) => `journalctl ${scope === 'user' ? '--user ' : ''}-u ${SERVICE_UNIT}`,
  }
}

function unitFiles(plan: ServicePlan, folder: string): ServiceFile[] {
  const units = [
    { path: join(folder, SERVICE_UNIT), text: serviceUnit(plan) },
    { path: join(folder, SOCKET_UNIT), text: socketUnit(plan) },
  ]
  return plan.scope === 'system' ? [...units, { path: SYSTEM_USERS, text: userLine() }] : units
}

function properties(text: string): Readonly<Record<(typeof PROPERTIES)[number], string>> {
  const found = Object.fromEntries(text.split('\n').map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const missing = PROPERTIES.find((name) => !(name in found))
  if (missing !== undefined) throw new AppError('unavailable', `systemctl did not show ${missing}`)
  return found
}
