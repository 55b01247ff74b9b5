/** What the rest of the gateway knows of the configuration. */
import type { CatalogueId, ConfigSchema, FeatureId, Section } from '@sluice/sdk'
import type * as v from 'valibot'
import type { KeyPath } from './toml/key-path.ts'

/** A section with whoever declared it: the core, a feature of this build. */
export interface OwnedSection {
  readonly owner: FeatureId | 'core'
  readonly section: Section
}

/**
 * `configured`: the file or the environment says something about it. `defaults`: nothing is said and nothing need be.
 * `unconfigured`: nothing is said and `why` names what is missing, or it is turned off and incomplete; the feature is not built.
 */
export type SectionState<Value = object> =
  | { readonly state: 'configured' | 'defaults'; readonly value: Value }
  | { readonly state: 'unconfigured'; readonly why: string }

export type ValueSource =
  | { readonly kind: 'file' | 'default' }
  /** `variable` is the name of the environment variable. */
  | { readonly kind: 'environment'; readonly variable: string }

/** A section the file configures for a feature this build lacks. */
export interface LeftOut {
  readonly section: string
  readonly feature: CatalogueId
  /** The build instruction. */
  readonly build: string
}

export interface LoadedConfig {
  readonly file: string
  /** The value of a core section: always there, since all its keys have defaults. */
  core<Schema extends ConfigSchema>(section: Section<Schema>): v.InferOutput<Schema>
  of(owner: FeatureId): SectionState
  /** Of the effective values of this owner's keys, environment and secrets included; equal hashes mean nothing changed. */
  hash(owner: FeatureId | 'core', path: string): string
  /** Where the value of a key comes from; a key without a value has the source `default`. */
  source(path: KeyPath): ValueSource
  readonly leftOut: readonly LeftOut[]
  /** Sentences about legal but unwise values, such as a secret in plain text, for `doctor` and the log at start. */
  readonly warnings: readonly string[]
  /** The dotted keys of secrets that the file holds in plain text; each of them is in `warnings` too. */
  readonly plainSecrets: readonly string[]
}
