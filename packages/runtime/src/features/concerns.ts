/** What an operator should know before the first message comes, told at the start and, where it is new, after a reload. */

import { gatewaySection, isLoopbackHost, isOpenToAll, leftOutFiles, OPEN_TO_ALL, PLAIN_HTTP, unprovedChannels } from '@sluice/config'
import type { LogFields } from '@sluice/sdk'
import type { OpenRuntime } from '../open-runtime.ts'
import type { FeatureStatus } from './feature-status.ts'
import { unknownToolNames } from './unknown-tool-names.ts'

type Concern = readonly [message: string, fields?: LogFields]

const UNPROVED = 'requests to this channel are not verified: whoever reaches the address can post as the provider'

const compiledOf = (features: readonly FeatureStatus[]) => features.flatMap(({ feature, compiled }) => (compiled ? [feature] : []))

/** Of the configuration in force. */
export function concernsOf(runtime: OpenRuntime): Concern[] {
  const { warnings, leftOut } = runtime.config()
  const { channels, features } = runtime.snapshot()
  const { host, require_pairing } = runtime.config().core(gatewaySection)
  return [
    ...warnings.map((warning): Concern => [warning]),
    ...unknownToolNames(runtime).map((problem): Concern => [problem]),
    ...(isOpenToAll(host, require_pairing) ? [[OPEN_TO_ALL, { host }] as const] : []),
    ...(isLoopbackHost(host) ? [] : [[PLAIN_HTTP, { host }] as const]),
    ...unprovedChannels(channels).map(({ channel, key }): Concern => [UNPROVED, { channel, set: key }]),
    ...channels.flatMap(({ name, lacks }): Concern[] =>
      lacks ? [['a channel cannot work as it is configured', { channel: name, lacks }]] : [],
    ),
    ...leftOut.map(
      ({ section, feature, build }): Concern => [`[${section}] is configured, but this build leaves ${feature} out`, { build }],
    ),
    ...leftOutFiles(runtime.dataDir, compiledOf(features)).map(
      ({ file, feature, build }): Concern => [`${file} is there, but this build leaves ${feature} out`, { build }],
    ),
    ...features.flatMap(({ feature, state, reason }): Concern[] => (state === 'failed' ? [['a feature failed', { feature, reason }]] : [])),
  ]
}

/** Logs them, but for those that were there before. */
export function warnOf(runtime: OpenRuntime, before: readonly Concern[] = []): void {
  const known = new Set(before.map((concern) => JSON.stringify(concern)))
  for (const concern of concernsOf(runtime)) if (!known.has(JSON.stringify(concern))) runtime.log.warn(...concern)
}
