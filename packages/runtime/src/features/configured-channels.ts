/** The channels of a runtime as their operator knows them: by the sections and keys of the configuration. */

import { sectionKeys } from '@sluice/config'
import type { Channel, Section } from '@sluice/sdk'
import type { OpenRuntime } from '../open-runtime.ts'

export interface ReadyChannel {
  readonly channel: Channel
  /** Where its settings stand. */
  readonly section: string
  /** The key of its allowlist. */
  readonly allowKey: string
}

/** A channel that is not there, and why. */
export interface AbsentChannel {
  readonly name: string
  readonly section: string
  readonly reason: string
}

export interface ConfiguredChannels {
  readonly ready: readonly ReadyChannel[]
  /** What the configuration wants and does not get. */
  readonly broken: readonly AbsentChannel[]
  /** What this build has and nobody configured or enabled. */
  readonly unconfigured: readonly AbsentChannel[]
}

const PREFIX = 'channels_config.'

export function configuredChannels({ snapshot, config }: Pick<OpenRuntime, 'snapshot' | 'config'>): ConfiguredChannels {
  const ready: ReadyChannel[] = []
  const broken: AbsentChannel[] = []
  const unconfigured: AbsentChannel[] = []
  for (const { feature, parts, state, reason } of snapshot().instances) {
    const { section } = feature
    if (!section?.path.startsWith(PREFIX)) continue
    const channels = state() === 'ready' ? (parts.channels ?? []) : []
    ready.push(...channels.map((channel) => ({ channel, section: section.path, allowKey: allowKeyOf(section) })))
    if (channels.length > 0) continue
    const isBroken = state() === 'failed' || state() === 'starting'
    const list = isBroken ? broken : unconfigured
    list.push({ name: nameOf(section.path), section: section.path, reason: reason() ?? 'it is not enabled' })
  }
  for (const { section, build } of config().leftOut) {
    if (section.startsWith(PREFIX)) broken.push({ name: nameOf(section), section, reason: `this build leaves it out; to get it: ${build}` })
  }
  return { ready, broken, unconfigured }
}

const nameOf = (path: string): string => path.slice(PREFIX.length)

/** Allowlists are `allowed_numbers`, `allowed_senders` or `allowed_users` (§2.3). */
const allowKeyOf = ({ schema }: Section): string =>
  [...sectionKeys(schema).keys()].find((key) => key.startsWith('allowed_')) ?? 'the allowlist'
