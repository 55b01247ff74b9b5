/** The channels of a snapshot, by the sections and keys of the configuration in which an operator sets them up. */

import { sectionKeys } from '@sluice/config'
import { type Channel, type Section, sectionsOfFeature } from '@sluice/sdk'
import type { Snapshot } from './snapshot.ts'

export interface ReadyChannel {
  readonly channel: Channel
  /** The path of its section. */
  readonly section: string
  /** The key of its allowlist. */
  readonly allowKey: string
}

/** A channel that does not run, with the reason. */
export interface AbsentChannel {
  readonly name: string
  readonly section: string
  readonly reason: string
}

export interface ConfiguredChannels {
  readonly ready: readonly ReadyChannel[]
  /** Channels that are configured, but failed, are still starting, or are left out of this build. */
  readonly broken: readonly AbsentChannel[]
  /** Channels of this build that are not configured or not enabled. */
  readonly unconfigured: readonly AbsentChannel[]
}

const PREFIX = 'channels_config.'

export function configuredChannels({ instances, config }: Snapshot): ConfiguredChannels {
  const ready: ReadyChannel[] = []
  const broken: AbsentChannel[] = []
  const unconfigured: AbsentChannel[] = []
  for (const instance of instances) {
    const sections = sectionsOfFeature(instance.feature).filter(({ path }) => path.startsWith(PREFIX))
    const state = instance.state()
    const built = state === 'ready' ? (instance.parts.channels ?? []) : []
    for (const section of sections) {
      const name = nameOf(section.path)
      const channels = sections.length > 1 ? built.filter((channel) => channel.name === name) : built
      ready.push(...channels.map((channel) => ({ channel, section: section.path, allowKey: allowKeyOf(section) })))
      if (channels.length > 0) continue
      const list = state === 'failed' || state === 'starting' ? broken : unconfigured
      list.push({ name, section: section.path, reason: instance.reason() ?? 'it is not enabled' })
    }
  }
  for (const { section, build } of config.leftOut) {
    if (section.startsWith(PREFIX)) broken.push({ name: nameOf(section), section, reason: `this build leaves it out; to get it: ${build}` })
  }
  return { ready, broken, unconfigured }
}

const nameOf = (path: string): string => path.slice(PREFIX.length)

/** An allowlist is `allowed_numbers`, `allowed_senders` or `allowed_users`. */
const allowKeyOf = ({ schema }: Section): string =>
  [...sectionKeys(schema).keys()].find((key) => key.startsWith('allowed_')) ?? 'the allowlist'
