/** The state that each new configuration replaces. Parts that open before the features read it when they need it. */
import type { LoadedConfig } from '@sluice/config'
import type { Snapshot } from '@sluice/runtime'
import type { Observation, Secret } from '@sluice/sdk'

export class InForce {
  /** The secrets that no output may show. */
  secrets: readonly Secret[]
  /** Undefined before the first configuration is applied. */
  snapshot: Snapshot | undefined
  readonly #first: LoadedConfig

  constructor(first: LoadedConfig, secrets: readonly Secret[]) {
    this.#first = first
    this.secrets = secrets
  }

  /** The configuration in force. */
  readonly config = (): LoadedConfig => this.snapshot?.config ?? this.#first

  readonly observe = (observation: Observation): void => this.snapshot?.observe(observation)

  readonly wantsTraces = (): boolean => this.snapshot?.wantsTraces ?? false
}
