/** The loaded configuration as other packages see it. */
import type { CatalogueId, ConfigSchema, FeatureId, Section } from '@sluice/sdk'
import type * as v from 'valibot'
import type { KeyPath } from './toml/key-path.ts'

/** A section and its owner: the core or a feature of this build. */
export interface OwnedSection {
  readonly owner: FeatureId | 'core'
  readonly section: Section
  /** True when these keys only add to the section of a feature: with the header alone, the feature still counts as configured. */
  readonly isAddition?: true
  /** True while the code of the feature is not loaded, because nothing names it: the section is not configured, and its keys are unknown. */
  readonly isUnloaded?: true
}

/**
 * `configured`: the file or the environment sets keys of the section. `defaults`: the section is not set and every key has a
 * default. `unconfigured`: required keys are missing, as `why` says, or the section is turned off and incomplete; the feature
 * is not built.
 */
export type SectionState<Value = object> =
  | { readonly state: 'configured' | 'defaults'; readonly value: Value }
  | { readonly state: 'unconfigured'; readonly why: string }

export type ValueSource =
  | { readonly kind: 'file' | 'default' }
  /** `variable` is the name of the environment variable. */
  | { readonly kind: 'environment'; readonly variable: string }

/** A section of the file for a feature that this build leaves out. */
export interface LeftOut {
  readonly section: string
  readonly feature: CatalogueId
  /** The build instruction. */
  readonly build: string
}

export interface LoadedConfig {
  readonly file: string
  /** Returns the value of a core section. Every key of a core section has a default. */
  core<Schema extends ConfigSchema>(section: Section<Schema>): v.InferOutput<Schema>
  /** Tells whether the core has keys of its own in the section at this path. */
  hasCore(path: string): boolean
  /** Returns the state of the section of a feature; `path` names one of several. */
  of(owner: FeatureId, path?: string): SectionState
  /** Returns the hash of the effective values of the owner's keys, environment and secrets included. Equal hashes mean that nothing changed. */
  hash(owner: FeatureId | 'core', path: string): string
  /** Returns the source of the value of a key; a key without a value has the source `default`. */
  source(path: KeyPath): ValueSource
  readonly leftOut: readonly LeftOut[]
  /** Warnings about valid but unwise values, such as a secret in plain text, for `sluice doctor` and the log at start. */
  readonly warnings: readonly string[]
  /** The dotted keys of secrets that the file holds in plain text. `warnings` names each of them, too. */
  readonly plainSecrets: readonly string[]
}
