/** The checks of `sluice doctor` (decisions, command line contract): what is wrong here, and what mends it. */
import { existsSync } from 'node:fs'
import { access, constants, mkdir, stat, statfs } from 'node:fs/promises'
import type { LoadedConfig, TomlProblem } from '@sluice/config'
import {
  type GatewayConfig,
  gatewaySection,
  isLoopbackHost,
  isOpenToAll,
  leftOutFiles,
  OPEN_TO_ALL,
  PLAIN_HTTP,
  policySection,
  sandboxSection,
  workspaceRoot,
} from '@sluice/config'
import { signalScope } from '@sluice/kit'
import { AppError, errorText, type Parts, type Policy } from '@sluice/sdk'
import type { FeatureStatus } from '../features/feature-status.ts'
import { unknownToolNames } from '../features/unknown-tool-names.ts'
import { type OpenRuntime, openRuntime, type RuntimeOptions } from '../open-runtime.ts'
import { type Check, fail, ok, warn } from './check.ts'
import { checkChannels, checkDeliveries, checkWebhooks } from './check-channels.ts'
import { checkMemory } from './check-memory.ts'
import { checkProcedures } from './check-procedures.ts'
import { checkProvider } from './check-provider.ts'
import { checkInWorkspace, checkSandbox } from './check-sandbox.ts'
import { checkStorage } from './check-storage.ts'
import { checkWarnings } from './check-warnings.ts'
import { checkConfigPlace, checkWorkspace } from './check-workspace.ts'

export interface DoctorOptions extends RuntimeOptions {
  readonly daemon: { readonly running: boolean; readonly reason?: string; readonly health?: unknown }
}

const NODE_MAJOR_MIN = 24
const PROVE_MS_MAX = 20_000
const FREE_BYTES_MIN = 512 * 1024 * 1024

/** Runs every check; none of them changes anything, but that the data directory and an empty store are made where missing. */
export async function runChecks(options: DoctorOptions): Promise<Check[]> {
  const checks = [checkNode(), ...(await checkDataDir(options.dataDir))]
  let runtime: OpenRuntime
  try {
    runtime = await openRuntime({ ...options, quiet: true })
  } catch (error) {
    return [...checks, ...configProblems(error)]
  }
  const root = workspaceRoot(runtime.config(), options.dataDir)
  try {
    const choice = await runtime.guards().sandbox.choice()
    return runtime.hideSecrets([
      ...checks,
      await checkStore(runtime),
      await checkStorage(runtime),
      ...checkConfig(runtime.config(), options.configFile),
      ...(await checkConfigPlace(options)),
      await checkWorkspace(root, options),
      ...(await checkProvider(runtime.snapshot().registry.models)),
      checkExposure(runtime.config().core(gatewaySection)),
      checkPolicy(runtime.config().core(policySection)),
      ...unknownToolNames(runtime.snapshot()).map((problem) => warn('policy', problem, 'correct the name in [security.policy]')),
      checkSandbox(choice, runtime.config().core(sandboxSection)),
      ...(choice.warning === undefined ? await checkInWorkspace(runtime.guards().spawn, root) : []),
      ...(await checkOtherSandboxes(runtime)),
      ...checkFeatures(runtime.snapshot().features),
      ...checkFiles(options.dataDir, runtime.snapshot().features),
      ...(await proveFeatures(runtime)),
      ...checkChannels(runtime),
      ...checkWebhooks(runtime),
      ...(await checkDeliveries(runtime)),
      ...(await checkProcedures(runtime)),
      await checkMemory(runtime.store.memory),
      ...checkWarnings(options.daemon.health),
      options.daemon.running
        ? ok('daemon', 'it runs and answers')
        : warn('daemon', options.daemon.reason ?? 'it does not run', "start it with 'sluice daemon'"),
    ])
  } finally {
    await runtime.close(0)
  }
}

function checkNode(): Check {
  const { node } = process.versions
  if (Number(node.split('.')[0]) >= NODE_MAJOR_MIN) return ok('node', `Node ${node}`)
  return fail('node', `Node ${node} is older than ${NODE_MAJOR_MIN}`, `install Node ${NODE_MAJOR_MIN} or newer`)
}

async function checkDataDir(dataDir: string): Promise<Check[]> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
    const { mode } = await stat(dataDir)
    const { bavail, bsize } = await statfs(dataDir)
    const free = Number(bavail) * Number(bsize)
    const open = (mode & 0o077) !== 0
    const mebibytes = Math.round(free / 1024 / 1024)
    return [
      open ? warn('data directory', `${dataDir} can be entered by other users`, `chmod 700 ${dataDir}`) : ok('data directory', dataDir),
      free < FREE_BYTES_MIN
        ? fail('disk', `${mebibytes} MiB are free under ${dataDir}; accepted messages must fit`, 'free some space')
        : ok('disk', `${mebibytes} MiB are free`),
    ]
  } catch (error) {
    return [unusable(dataDir, error)]
  }
}

/** What mends a folder depends on why it cannot be used. */
function unusable(dataDir: string, error: unknown): Check {
  if ((error as NodeJS.ErrnoException).code === 'EROFS') {
    const fix = 'mount it for reading and writing; if the system made it read-only by itself, look for disk errors in the kernel log'
    return fail('data directory', `${dataDir} is on a file system that is mounted read-only`, fix)
  }
  return fail('data directory', `${dataDir}: ${errorText(error)}`, 'make it writable for this user, or name another with --data-dir')
}

async function checkStore({ store }: OpenRuntime): Promise<Check> {
  const problems = await store.check()
  if (problems.length === 0) return ok('store', 'every page and index is sound')
  return fail('store', problems.map(({ detail }) => detail).join('; '), 'stop the daemon and restore sluice.db from a backup')
}

function configProblems(error: unknown): Check[] {
  const problems = (error instanceof AppError ? (error.fields.problems ?? []) : []) as readonly TomlProblem[]
  if (problems.length === 0) return [fail('start', errorText(error), 'the daemon would not start either')]
  return problems.map(({ file, line, message }) => fail('config', `${file}${line ? `:${line}` : ''}: ${message}`, 'mend the file'))
}

function checkConfig({ leftOut, warnings, plainSecrets }: LoadedConfig, configFile: string): Check[] {
  return [
    ...leftOut.map(({ section, feature, build }) => fail('config', `[${section}] is for ${feature}, which this build leaves out`, build)),
    ...warnings.map((warning) =>
      warn('config', warning, plainSecrets.some((key) => warning.startsWith(`\`${key}\``)) ? 'sluice config seal' : `see ${configFile}`),
    ),
    ...(leftOut.length + warnings.length === 0
      ? [ok('config', existsSync(configFile) ? `${configFile} is valid` : `${configFile} does not exist: all defaults`)]
      : []),
  ]
}

function checkExposure({ host, require_pairing }: GatewayConfig): Check {
  if (isOpenToAll(host, require_pairing))
    return fail('exposure', OPEN_TO_ALL, 'set [gateway] require_pairing = true, or host = "127.0.0.1"')
  if (!isLoopbackHost(host))
    return warn('exposure', PLAIN_HTTP, 'put a reverse proxy with TLS in front, and set [gateway] host = "127.0.0.1"')
  return ok('exposure', require_pairing ? 'every caller presents a token' : 'open to this machine alone')
}

function checkPolicy({ level, allowed_commands }: Policy): Check {
  if (level === 'full') return warn('policy', 'the agent asks nobody before it acts', 'set [security.policy] level = "supervised"')
  return ok('policy', `${level}; ${allowed_commands.includes('*') ? 'any command' : `${allowed_commands.length} commands`} allowed`)
}

/** What the features that are at work find when they try themselves; one that takes too long has failed. */
async function proveFeatures({ snapshot }: OpenRuntime): Promise<Check[]> {
  const { observers: chosen, instances } = snapshot()
  // Of the observers only the configured one is at work.
  const isIdle = ({ observers }: Parts) => observers?.every((observer) => !chosen.includes(observer)) ?? false
  const proofs = instances.flatMap(({ feature, parts }) => (parts.check && !isIdle(parts) ? [{ id: feature.id, check: parts.check }] : []))
  const found = await Promise.all(
    proofs.map(async ({ id, check }) => {
      try {
        using limit = signalScope([], PROVE_MS_MAX)
        return (await check(limit.signal)).map((finding) => ({ check: id, ...finding, fix: finding.fix ?? null }))
      } catch (error) {
        return [fail(id, `its check failed: ${errorText(error)}`, `see the section of ${id} in the configuration`)]
      }
    }),
  )
  return found.flat()
}

/** Of those the build has beside the one in use: what is to be had here. Nothing is wrong with one that is not. */
async function checkOtherSandboxes(runtime: OpenRuntime): Promise<Check[]> {
  const others = await runtime.guards().sandbox.others()
  return others.map(({ name, available, detail }) =>
    ok(`sandbox ${name}`, `not in use; ${available ? 'it would work here' : 'it would not work here'}: ${detail}`),
  )
}

function checkFiles(dataDir: string, features: readonly FeatureStatus[]): Check[] {
  const compiled = features.flatMap((each) => (each.compiled ? [each.feature] : []))
  return leftOutFiles(dataDir, compiled).map(({ file, feature, build }) =>
    fail('features', `${file} is for ${feature}, which this build leaves out`, build),
  )
}

function checkFeatures(features: readonly FeatureStatus[]): Check[] {
  const failed = features.filter(({ state }) => state === 'failed')
  if (failed.length === 0) return [ok('features', `${features.filter(({ compiled }) => compiled).length} compiled in`)]
  return failed.map(({ feature, reason }) =>
    fail('features', `${feature}: ${reason}`, `see the section of ${feature} in the configuration`),
  )
}
