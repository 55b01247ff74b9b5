/** The immutable registry of tools and models that a turn uses. A reload replaces it as a whole. */
import type { Observation, Tool } from '@sluice/sdk'
import type { ModelChain } from './model-chain.ts'

export interface Registry {
  /** The tools by name, including stubs, which answer with a build instruction. */
  readonly tools: ReadonlyMap<string, Tool>
  /** The tools that the model is offered: the available ones of the build. */
  readonly offered: readonly Tool[]
  readonly models: ModelChain
  /** Returns the lines of features for the system prompt. */
  prompt(): string
  observe(observation: Observation): void
}

/** A registry in use. Its features stay open until `release`, also after a newer registry has replaced it. */
export interface RegistryPin {
  readonly registry: Registry
  release(): void
}
