/** The sandbox that commands run in: chosen at the first use, and again while a better one may become available. */
import type { Logger } from '@sluice/sdk'
import { probeOthers, type SandboxChoice, type SelectSandboxOptions, selectSandbox, type TriedProbe } from './select-sandbox.ts'

export class SandboxInForce {
  readonly #options: () => SelectSandboxOptions
  readonly #log: Logger
  #inForce: Promise<SandboxChoice> | undefined
  #latest: SandboxChoice | undefined
  #retrying: Promise<SandboxChoice> | undefined
  #attempts = 0

  /** `options` is read at each choice. */
  constructor(options: () => SelectSandboxOptions, log: Logger) {
    this.#options = options
    this.#log = log
  }

  /** Makes the choice on the first call, and returns the one in force afterwards. A choice that fails is made again on the next call. */
  choice(): Promise<SandboxChoice> {
    this.#inForce ??= this.#choose().catch((error: unknown) => {
      this.#inForce = undefined
      throw error
    })
    return this.#inForce
  }

  /** The choice in force; `undefined` before the first one is made. */
  latest(): SandboxChoice | undefined {
    return this.#latest
  }

  /** Chooses again, unless the choice is final. The choice in force stays until the new one is made. */
  async retry(): Promise<void> {
    if (!this.#latest || this.#latest.isFinal) return
    this.#retrying ??= this.#choose().finally(() => {
      this.#retrying = undefined
    })
    this.#inForce = Promise.resolve(await this.#retrying)
  }

  /** Probes the backends of the build that the choice has not tried. */
  async others(): Promise<readonly TriedProbe[]> {
    return probeOthers(this.#options(), await this.choice())
  }

  async #choose(): Promise<SandboxChoice> {
    const next = await selectSandbox(this.#options(), this.#attempts++)
    this.#report(next, this.#latest)
    this.#latest = next
    return next
  }

  /** Logs what changed since the choice before, so that a backend that stays unavailable is reported once. */
  #report({ sandbox, probes, warning }: SandboxChoice, before: SandboxChoice | undefined): void {
    for (const { name, available, isInstalled, isUnknown, detail } of probes) {
      if (before?.probes.some((tried) => tried.name === name && tried.detail === detail)) continue
      // A backend that is not on this machine at all, such as one of another system, is not worth a line.
      const level = available || isInstalled || isUnknown ? 'info' : 'debug'
      this.#log[level](available ? 'sandbox works' : 'sandbox not available', { backend: name, detail })
    }
    if (warning !== undefined && warning !== before?.warning) this.#log.warn(warning)
    if (before && sandbox.name !== before.sandbox.name) this.#log.info('sandbox changed', { backend: sandbox.name })
  }
}
