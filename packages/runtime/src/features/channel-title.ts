/** The names of channels for people. */
import { type Row, rowOf } from '@sluice/sdk'
import type { FeatureStatus } from './feature-status.ts'

/** Returns the feature that has built a channel: of two that share a section, the one that is ready. */
export function featureOfChannel(name: string, features: readonly FeatureStatus[]): string {
  const section = `channels_config.${name}`
  const having = features.filter(({ feature }) => {
    const row = rowOf(feature)
    return row?.section === section || row?.moreSections?.includes(section)
  })
  return (having.find(({ state }) => state === 'ready') ?? having[0])?.feature ?? `channel-${name}`
}

/** Returns the name of the platform; a further channel of a platform keeps its own name, too. */
export function channelTitle(name: string, features: readonly FeatureStatus[]): string {
  const feature = featureOfChannel(name, features)
  const { summary }: Partial<Row> = rowOf(feature) ?? {}
  if (summary === undefined) return name
  return feature.replaceAll('-', '_') === `channel_${name}` ? summary : `${summary} (${name})`
}
