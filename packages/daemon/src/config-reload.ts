/** Applies changes of the configuration file to a running daemon. */
import { gatewaySection, LOSS_HOLD_MS, nodeText, readConfigText, watchConfig, workspaceRoots } from '@sluice/config'
import type { Reloaded } from '@sluice/http/answers'
import { canAgentWrite, logWarnings, type OperatorWarning, operatorWarnings } from '@sluice/runtime'
import { AppError, type ConfigVersion, errorText, type Feature, type SharedConfig } from '@sluice/sdk'
import type { OpenRuntime } from './runtime/open-runtime.ts'

const NOTHING_CHANGED: Reloaded = { sections: [], rebuilt: [] }

export class ConfigReload {
  readonly #runtime: OpenRuntime
  readonly #file: string
  readonly #features: readonly Feature[]
  /** Changes are applied one after the other. */
  #applying: Promise<unknown> = Promise.resolve()

  constructor(runtime: OpenRuntime, file: string, features: readonly Feature[]) {
    this.#runtime = runtime
    this.#file = file
    this.#features = features
  }

  /** Watches the file until the signal aborts. */
  watch(signal: AbortSignal): void {
    const { configText, log, sharedConfig } = this.#runtime
    if (sharedConfig) this.#watchShared(sharedConfig, signal)
    watchConfig({
      file: this.#file,
      // The text in force has more than the file.
      ...(!sharedConfig && { text: configText }),
      signal,
      onChange: (text) => this.#fileChanged(text),
      onLoss: (lost) =>
        log.warn('The configuration file lost text. The daemon keeps the configuration in force unless the file stays so.', {
          file: this.#file,
          lost,
          waits_secs: LOSS_HOLD_MS / 1000,
        }),
    })
  }

  /** Reads and applies the file now, on an operator's request: also a file that lost text. Never rejects. */
  readonly reload = (): Promise<Reloaded> => {
    const { log } = this.#runtime
    log.info('reading the configuration again', { file: this.#file })
    return this.#inOrder(async () => this.#applyFile(await readConfigText(this.#file)))
  }

  #inOrder(change: () => Promise<Reloaded>): Promise<Reloaded> {
    const { log } = this.#runtime
    const applied = this.#applying.then(change).catch((error: unknown): Reloaded => {
      log.error('The configuration could not be read; the one in force stays', { error: errorText(error) })
      return { error }
    })
    this.#applying = applied
    return applied
  }

  /** Applies each version after the one that the start has read. */
  #watchShared({ config: shared, version }: NonNullable<OpenRuntime['sharedConfig']>, signal: AbortSignal): void {
    const changed = (config: ConfigVersion): void => {
      void this.#inOrder(async () => {
        this.#runtime.log.info('reading the configuration of the cluster again', { version: config.version, by: config.by })
        return this.#applyShared(shared, config)
      })
    }
    void shared
      .report(version)
      .catch((error: unknown) => this.#runtime.log.warn('other nodes do not see the version of the configuration here', { error }))
    shared.watch(changed, version, signal)
  }

  async #applyShared(shared: SharedConfig, { text, version }: ConfigVersion): Promise<Reloaded> {
    const { log } = this.#runtime
    try {
      const source = { configFile: this.#file, features: this.#features }
      const applied = await this.#apply(await nodeText(source, text, await readConfigText(this.#file)))
      if (!('error' in applied)) await shared.report(version)
      return applied
    } catch (error) {
      log.error('The configuration of the cluster could not be applied; the one in force stays', { version, error: errorText(error) })
      return { error }
    }
  }

  /** The text of the file, or that of the cluster with the keys of the file. */
  async #applyFile(text: string): Promise<Reloaded> {
    const { sharedConfig } = this.#runtime
    const newest = await sharedConfig?.config.read()
    return sharedConfig && newest ? this.#applyShared(sharedConfig.config, newest) : this.#apply(text)
  }

  /** A change of a file that the agent can write may come from the agent: it waits until an operator asks for a reload. */
  async #fileChanged(text: string): Promise<void> {
    const { dataDir, log } = this.#runtime
    const workspaces = workspaceRoots(this.#runtime.config(), dataDir)
    if (!canAgentWrite(this.#file, { workspaces, dataDir })) {
      await this.#inOrder(async () =>
        // A file that has changed since is seen next, or is in force already.
        (await readConfigText(this.#file)) === text ? this.#applyFile(text) : NOTHING_CHANGED,
      )
      return
    }
    log.warn('The configuration file changed, but the agent can write in its folder, so the change is not in force.', {
      file: this.#file,
      fix: `check the file and run 'sluice reload'; better, keep it in ${dataDir}`,
    })
  }

  /** Puts a valid configuration in force. Any other changes nothing and is reported. */
  async #apply(text: string): Promise<Reloaded> {
    const { log, bus, health } = this.#runtime
    const before = this.#runtime.config().core(gatewaySection)
    const known = this.#warnings()
    try {
      void this.#runtime.guards().sandbox.retry()
      const { sections, rebuilt } = await this.#runtime.reload(text)
      health.configRead(true)
      if (sections.length === 0) return NOTHING_CHANGED
      log.info('configuration reloaded', { sections, rebuilt })
      logWarnings(log, this.#warnings(), known)
      void this.#runtime.guards().sandbox.choice()
      bus.emit({ type: 'config_reloaded', sections, rebuilt })
      const { host, port } = this.#runtime.config().core(gatewaySection)
      if (host !== before.host || port !== before.port) log.warn('[gateway] host and port take effect at the next start')
      return { sections, rebuilt }
    } catch (error) {
      health.configRead(false)
      const problems = error instanceof AppError ? error.fields.problems : undefined
      log.error('the changed configuration is not valid; the one in force stays', { error: errorText(error), problems })
      bus.emit({ type: 'config_rejected', error: errorText(error) })
      return { error }
    }
  }

  #warnings(): OperatorWarning[] {
    return operatorWarnings(this.#runtime.snapshot(), this.#runtime.dataDir)
  }
}
