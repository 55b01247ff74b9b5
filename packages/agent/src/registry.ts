/** What turns see of the features: an immutable registry, replaced as a whole on reload (§1 items 5 and 6). */
import type { Observation, Tool } from '@sluice/sdk'
import type { ModelChain } from './model-chain.ts'

export interface Registry {
  /** By name, the stubs of what the build lacks included: a stub answers with its build instruction. */
  readonly tools: ReadonlyMap<string, Tool>
  /** The tools that the model is offered: the available ones, and stubs of configured features that the build leaves out. */
  readonly offered: readonly Tool[]
  readonly models: ModelChain
  /** Lines features add to the system prompt. */
  prompt(): string
  observe(observation: Observation): void
}

/** A registry in use: it stays whole until `release`, even when a newer one has replaced it. */
export interface Lease {
  readonly registry: Registry
  release(): void
}
