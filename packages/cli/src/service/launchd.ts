/** The service manager launchd of macOS: an agent of the user who installs it, or a daemon of the machine that runs as this user. */
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { launchdPlist } from './launchd-plist.ts'
import { homeOf, removeFiles, runProgram, type ServiceManager } from './service-manager.ts'
import { type Scope, SERVICE_NAME } from './service-plan.ts'

export function launchd(context: CliContext): ServiceManager {
  const path = (scope: Scope): string =>
    join(scope === 'system' ? '/Library/LaunchDaemons' : join(homeOf(context), 'Library', 'LaunchAgents'), `${SERVICE_NAME}.plist`)
  const domain = (scope: Scope): string => (scope === 'system' ? 'system' : `gui/${process.getuid?.() ?? 0}`)
  const target = (scope: Scope): string => `${domain(scope)}/${SERVICE_NAME}`
  const bootOut = (scope: Scope): Promise<string> => runProgram(context, ['launchctl', 'bootout', target(scope)], { mayFail: true })

  return {
    name: 'launchd',
    files: (plan) => [{ path: path(plan.scope), text: launchdPlist(plan, serviceUser(context)) }],
    async install({ scope }, { start }) {
      // It fails if the service is not loaded yet.
      await bootOut(scope)
      if (start) await runProgram(context, ['launchctl', 'bootstrap', domain(scope), path(scope)])
    },
    async status(scope) {
      const installed = existsSync(path(scope))
      const shown = await runProgram(context, ['launchctl', 'print', target(scope)], { mayFail: true })
      const state = /^[\t ]*state = (.+)$/m.exec(shown)?.[1] ?? 'not loaded'
      const pid = /^[\t ]*pid = (\d+)$/m.exec(shown)?.[1]
      return {
        installed,
        running: state === 'running',
        enabled: installed,
        state,
        pid: pid === undefined ? null : Number(pid),
        restarts: null,
      }
    },
    async restart(scope) {
      await runProgram(context, ['launchctl', 'kickstart', '-k', target(scope)])
    },
    async stop(scope) {
      // The end of a daemon that was asked to stop is a success, after which launchd starts none.
      await runProgram(context, ['launchctl', 'kill', 'SIGTERM', target(scope)])
    },
    async uninstall(scope) {
      if (!existsSync(path(scope))) return false
      await bootOut(scope)
      return removeFiles([path(scope)])
    },
    logCommand: () => `tail -f ${join(context.dataDir, 'daemon.log')}`,
  }
}

/** The user of a system service: the one who called `sudo`. A service that runs as root would give its commands the whole machine. */
function serviceUser({ env }: CliContext): string {
  const name = env.SUDO_USER || userInfo().username
  if (name === 'root')
    throw new AppError('invalid_request', 'A service must not run as root: call this command with sudo as the user who is to run it.')
  return name
}
