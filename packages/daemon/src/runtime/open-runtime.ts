/** Opens one runtime: configuration, store, features and agent; everything but HTTP. */
import {
  clusterSection,
  configuredAgents,
  joinSharedConfig,
  type LoadedConfig,
  parseConfig,
  readConfigText,
  readNodeText,
} from '@sluice/config'
import { commandsFolder, createCoreServices, endLeftCommands, type Runtime, readBacklog } from '@sluice/runtime'
import { openBackend } from '@sluice/runtime/open-backend'
import type { SharedConfig, Store } from '@sluice/sdk'
import { agreeAtUpgrade } from './agree-at-upgrade.ts'
import { type Closing, closingOf } from './close-runtime.ts'
import { createFollowWaiting } from './follow-waiting.ts'
import { type Features, openFeatures } from './open-features.ts'
import { type Opened, openParts, type Start } from './opened.ts'
import { type Parts, putTogether } from './put-together.ts'
import { keepRoomsOfPersons } from './rooms-at-upgrade.ts'
import type { RuntimeOptions } from './runtime-options.ts'
import { vitalsOf } from './vitals.ts'

export type { RuntimeOptions }

/** A runtime whose configuration is in force: its parts live as long as it does. */
export type OpenRuntime = Opened & Features & Parts & Closing & Pick<Runtime, 'vitals' | 'backlog' | 'checks'>

/** Rejects if the configuration is not valid, or the store or a provider cannot be used; nothing stays open then. */
export async function openRuntime(options: RuntimeOptions): Promise<OpenRuntime> {
  const read = options.only === 'store' ? undefined : await readSource(options)
  const configText = read?.text ?? ''
  const source = options.only === 'store' ? { ...options, env: {}, configValues: undefined } : options
  const own = await parseConfig(source, configText)
  const backend = await openBackend(options, own)
  try {
    const joined = await joinCluster(options, own, backend?.store)
    if (!joined) return await start({ options, configText, config: own, backend, sharedVersion: read?.version })
    const config = await parseConfig(options, joined.text)
    const given = {
      options: { ...options, shared: joined.shared },
      configText: joined.text,
      config,
      backend,
      sharedVersion: joined.version,
    }
    return await start(given, joined)
  } catch (error) {
    await backend?.store.close()
    throw error
  }
}

/** The text of the configuration, and its version where it is that of a cluster. */
async function readSource(options: RuntimeOptions): Promise<{ readonly text: string; readonly version: number }> {
  if (options.shared && !options.configValues) return readNodeText(options, options.shared)
  return { text: options.configValues ? '' : await readConfigText(options.configFile), version: 0 }
}

interface Joined extends Awaited<ReturnType<typeof joinSharedConfig>> {
  readonly shared: SharedConfig
}

/** Resolves to the configuration of the cluster; to undefined where the node has its own. */
async function joinCluster(options: RuntimeOptions, own: LoadedConfig, store: Store | undefined): Promise<Joined | undefined> {
  const { cluster } = store ?? {}
  const isOwn = options.configValues !== undefined || options.only !== undefined || own.core(clusterSection).config === 'file'
  if (!cluster || isOwn) return undefined
  return { ...(await joinSharedConfig(options, cluster.config, cluster.node)), shared: cluster.config }
}

function logJoined({ log }: Opened, { version, isFirst, ignored }: Joined): void {
  if (isFirst) log.info('the cluster has its configuration from the file of this node', { version })
  if (ignored.length > 0)
    log.warn('the configuration of the cluster is in force: these sections of the file are ignored on this node', { version, ignored })
}

async function start(given: Start, joined?: Joined): Promise<OpenRuntime> {
  const runtime = createRuntime(given)
  if (joined) logJoined(runtime, joined)
  const { config, options } = given
  const { store, dataDir, clock, log, lifecycle, files, bus } = runtime
  try {
    if (options.only === undefined || options.only === 'config')
      await agreeAtUpgrade({ store, config, dataDir, clock, log: log.child('sop') })
    if (options.only === undefined) {
      const { ended, unproven } = await endLeftCommands(commandsFolder(dataDir), clock)
      if (ended.length > 0) log.warn('ended commands that an earlier daemon had left running', { commands: ended.length })
      if (unproven.length > 0)
        log.warn('process groups run whose ids are those of earlier commands, and nothing proves that they are; look at them with ps', {
          groups: unproven,
        })
    }
    if (options.only === undefined) await keepRoomsOfPersons({ store, log })
    if (options.only === undefined)
      await files.assignFormer([...configuredAgents(config, dataDir).values()].map(({ name, workspace: root }) => ({ name, root })))
    if (options.only === undefined) await runtime.people.refresh()
    await lifecycle.apply(config)
    if (options.only === undefined) await bus.start()
  } catch (error) {
    await store.close()
    throw error
  }
  return runtime
}

/** Before its first configuration is applied, a runtime has no snapshot. */
function createRuntime(start: Start): OpenRuntime {
  const { inForce, ...opened } = openParts(start)
  const { options } = start
  const closed = new AbortController()
  const features = openFeatures(opened, inForce, options, closed.signal)
  const parts = putTogether({ opened, features, inForce, options })
  const runtime = { ...opened, ...features, ...parts }
  const vitals = () => vitalsOf(runtime)
  const backlog = () => readBacklog(opened.store, opened.clock.nowMs())
  features.offer({ ...createCoreServices({ ...opened, vitals, backlog }), followWaiting: createFollowWaiting(runtime) })
  return {
    ...runtime,
    ...closingOf(runtime, closed),
    vitals,
    backlog,
    checks: async () => (await import('@sluice/runtime/doctor')).checkKept(runtime),
  } satisfies Runtime
}
