/** Applies changes of the configuration file to a running daemon. */
import { gatewaySection, LOSS_HOLD_MS, readConfigText, watchConfig, workspaceRoots } from '@sluice/config'
import { canAgentWrite, logWarnings, type OpenRuntime, type OperatorWarning, operatorWarnings } from '@sluice/runtime'
import { AppError, errorText } from '@sluice/sdk'

export class ConfigReload {
  readonly #runtime: OpenRuntime
  readonly #file: string

  constructor(runtime: OpenRuntime, file: string) {
    this.#runtime = runtime
    this.#file = file
  }

  /** Watches the file until the signal aborts. */
  watch(signal: AbortSignal): void {
    const { configText, log } = this.#runtime
    watchConfig({
      file: this.#file,
      text: configText,
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
  readonly reload = async (): Promise<void> => {
    const { log } = this.#runtime
    log.info('reading the configuration again', { file: this.#file })
    try {
      await this.#apply(await readConfigText(this.#file))
    } catch (error) {
      log.error('The configuration could not be read; the one in force stays', { error: errorText(error) })
    }
  }

  /** A change of a file that the agent can write may come from the agent: it waits until an operator asks for a reload. */
  async #fileChanged(text: string): Promise<void> {
    const { dataDir, log } = this.#runtime
    const workspaces = workspaceRoots(this.#runtime.config(), dataDir)
    if (!canAgentWrite(this.#file, { workspaces, dataDir })) return this.#apply(text)
    log.warn('The configuration file changed, but the agent can write in its folder, so the change is not in force.', {
      file: this.#file,
      fix: `check the file and send SIGHUP to process ${process.pid}; better, keep it in ${dataDir}`,
    })
  }

  /** Puts a valid configuration in force. Any other changes nothing, and is reported. */
  async #apply(text: string): Promise<void> {
    const { log, bus, health } = this.#runtime
    const before = this.#runtime.config().core(gatewaySection)
    const known = this.#warnings()
    try {
      void this.#runtime.guards().sandbox.retry()
      const { sections, rebuilt } = await this.#runtime.reload(text)
      health.configRead(true)
      if (sections.length === 0) return
      log.info('configuration reloaded', { sections, rebuilt })
      logWarnings(log, this.#warnings(), known)
      void this.#runtime.guards().sandbox.choice()
      bus.emit({ type: 'config_reloaded', sections, rebuilt })
      const { host, port } = this.#runtime.config().core(gatewaySection)
      if (host !== before.host || port !== before.port) log.warn('[gateway] host and port take effect at the next start')
    } catch (error) {
      health.configRead(false)
      const problems = error instanceof AppError ? error.fields.problems : undefined
      log.error('the changed configuration is not valid; the one in force stays', { error: errorText(error), problems })
      bus.emit({ type: 'config_rejected', error: errorText(error) })
    }
  }

  #warnings(): OperatorWarning[] {
    return operatorWarnings(this.#runtime.snapshot(), this.#runtime.dataDir)
  }
}
