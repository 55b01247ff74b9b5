/** Decides how a service runs: the program, its folders, its address, and the needs that limit how far it can be confined. */
import { constants } from 'node:fs'
import { readFile, realpath, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import {
  CORE_SECTIONS,
  effectiveConfig,
  followPath,
  gatewaySection,
  type LoadedConfig,
  readConfig,
  sandboxSection,
  workspaceRoots,
} from '@sluice/config'
import { isWithin } from '@sluice/kit'
import { AppError, type Sandbox } from '@sluice/sdk'
import type { CliContext } from '../context.ts'

/** `system`: a service of the machine with a user of its own; `user`: a service of the user who installs it. */
export type Scope = 'system' | 'user'

/**
 * A need of the configuration that rules out some restrictions. `namespaces`: commands or browsers get namespaces of their own;
 * `setuid`: the sandbox is a set-uid program; `devices`: features control hardware.
 */
export type Need = 'namespaces' | 'setuid' | 'devices'

export interface ServicePlan {
  readonly scope: Scope
  /** The words that start the daemon; the first one is absolute. */
  readonly command: readonly string[]
  readonly dataDir: string
  /** Folders outside of the data directory that the daemon writes. */
  readonly writable: readonly string[]
  readonly host: string
  readonly port: number
  readonly needs: ReadonlySet<Need>
  /** The groups of this machine that may open the devices. */
  readonly groups: readonly string[]
}

/** The user of a system service, and the name of its units. */
export const SERVICE_NAME = 'sluice'
export const SYSTEM_DATA_DIR = `/var/lib/${SERVICE_NAME}`

/** The groups to which Debian, Fedora and Raspberry Pi OS give serial ports, buses and pins. */
const DEVICE_GROUPS = ['dialout', 'plugdev', 'gpio', 'i2c', 'spi', 'input', 'audio']
/** The needs of each sandbox backend that has any. `container` only connects to a socket. */
const SANDBOX_NEEDS: Readonly<Record<string, Need>> = { userns: 'namespaces', jail: 'setuid' }

/** Returns the scope of `--scope`, or by default that of the caller: root installs for the machine, other users for themselves. */
export function chosenScope({ options }: CliContext): Scope {
  const { scope } = options
  if (scope === undefined) return process.getuid?.() === 0 ? 'system' : 'user'
  if (scope === 'system' || scope === 'user') return scope
  throw new AppError('invalid_request', `--scope wants system or user, not '${scope}'`)
}

/** The context of the service: a system service has its own data directory unless the caller names one. */
export function serviceContext(context: CliContext, scope: Scope): CliContext {
  if (scope === 'user' || context.options['data-dir'] !== undefined || context.env.SVC_DATA_DIR) return context
  const configFile = context.options.config === undefined ? `${SYSTEM_DATA_DIR}/config.toml` : context.configFile
  return { ...context, dataDir: SYSTEM_DATA_DIR, configFile }
}

/** Reads the configuration and plans its service. Throws `config_invalid` for an address that no service can keep open. */
export async function planService(context: CliContext, scope: Scope): Promise<ServicePlan> {
  const { dataDir, configFile } = context
  const config = await readConfig(context)
  const { host: name, port } = config.core(gatewaySection)
  const host = literalAddress(name)
  if (port === 0) throw new AppError('config_invalid', 'A service needs a fixed port: set [gateway] port.')
  const folders = [...workspaceRoots(config, dataDir), dirname(configFile)].map((path) => resolve(path))
  const needs = await needsOf(context, config)
  return {
    scope,
    command: await daemonCommand(context, scope),
    dataDir,
    writable: [...new Set(folders.filter((path) => !isWithin(path, dataDir)))].toSorted(),
    host,
    port,
    needs,
    groups: needs.has('devices') && scope === 'system' ? await existingGroups() : [],
  }
}

function literalAddress(host: string): string {
  if (host === 'localhost') return '127.0.0.1'
  if (/^[\d.]+$|:/.test(host)) return host
  throw new AppError('config_invalid', `A service listens on an IP address: set [gateway] host to an address instead of '${host}'.`)
}

/** Folders that a hardened system service does not see. */
const HIDDEN = ['/home', '/root', '/run/user', '/tmp', '/var/tmp']

/** Whether a path is in a home folder or in a folder for temporary files. */
export const isHidden = (path: string): boolean => HIDDEN.some((folder) => isWithin(path, folder))

/** The words that start this program again as a daemon, with absolute paths. */
async function daemonCommand({ dataDir, configFile }: CliContext, scope: Scope): Promise<readonly string[]> {
  const [program, entry] = [process.execPath, process.argv[1]]
  if (entry === undefined) throw new AppError('unavailable', 'The path of this program is not known, so no service can start it.')
  if (scope === 'system') for (const path of [program, entry]) await requireShared(await realpath(path))
  const config = configFile === join(dataDir, 'config.toml') ? [] : ['--config', configFile]
  return [program, entry, 'daemon', '--data-dir', dataDir, ...config]
}

/** Throws `unavailable` for a program that the user of a system service could not run. */
async function requireShared(path: string): Promise<void> {
  const cure = 'install Node and Sluice below /usr/local or /opt, readable for every user, and run this command from there'
  if (isHidden(path)) throw new AppError('unavailable', `A system service sees no home folders, and ${path} is in one: ${cure}.`)
  for (let place = path; place !== '/'; place = dirname(place)) {
    const { mode } = await stat(place)
    const needed = place === path ? constants.S_IROTH : constants.S_IXOTH
    if ((mode & needed) === 0) throw new AppError('unavailable', `The user of a system service cannot read ${place}: ${cure}.`)
  }
}

async function needsOf(context: CliContext, config: LoadedConfig): Promise<ReadonlySet<Need>> {
  const needs = new Set<Need>()
  const values = effectiveConfig(config, context.features, CORE_SECTIONS)
  if (followPath(values, ['peripherals', 'enabled']) === true) needs.add('devices')
  if (followPath(values, ['browser', 'enabled']) === true) needs.add('namespaces')
  const need = SANDBOX_NEEDS[await sandboxName(context, config)]
  if (need !== undefined) needs.add(need)
  return needs
}

/** The configured backend; for `auto`, the one that works here now. */
async function sandboxName(context: CliContext, config: LoadedConfig): Promise<string> {
  const { enabled, backend } = config.core(sandboxSection)
  if (!enabled) return 'none'
  if (backend !== 'auto') return backend
  const { openRuntime } = await import('@sluice/daemon/open-runtime')
  const runtime = await openRuntime({ ...context, quiet: true, only: 'features' })
  try {
    const { sandbox }: { readonly sandbox: Pick<Sandbox, 'name'> } = await runtime.guards().sandbox.choice()
    return sandbox.name
  } finally {
    await runtime.close(0)
  }
}

async function existingGroups(): Promise<readonly string[]> {
  const text = await readFile('/etc/group', 'utf8').catch(() => '')
  const names = new Set(text.split('\n').map((line) => line.split(':')[0]))
  return DEVICE_GROUPS.filter((name) => names.has(name))
}
