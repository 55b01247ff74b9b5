/** Warnings that an operator should read before the first message arrives: at the start, and after a reload where they are new. */

import { gatewaySection, isLoopbackHost, isOpenToAll, leftOutFiles, OPEN_TO_ALL, PLAIN_HTTP, unsignedChannels } from '@sluice/config'
import type { LogFields } from '@sluice/sdk'
import type { OpenRuntime } from '../open-runtime.ts'
import { unknownToolNames } from './unknown-tool-names.ts'

export type OperatorWarning = readonly [message: string, fields?: LogFields]

const UNVERIFIED = 'requests to this channel are not verified: any client that reaches the address can post as the platform'

/** The warnings about the configuration in force. */
export function operatorWarnings(runtime: OpenRuntime): OperatorWarning[] {
  const snapshot = runtime.snapshot()
  const { config, channels, features } = snapshot
  const { host, require_pairing } = config.core(gatewaySection)
  const compiled = features.flatMap((status) => (status.compiled ? [status.feature] : []))
  return [
    ...config.warnings.map((warning): OperatorWarning => [warning]),
    ...unknownToolNames(snapshot).map((problem): OperatorWarning => [problem]),
    ...(isOpenToAll(host, require_pairing) ? [[OPEN_TO_ALL, { host }] as const] : []),
    ...(isLoopbackHost(host) ? [] : [[PLAIN_HTTP, { host }] as const]),
    ...unsignedChannels(channels).map(({ channel, key }): OperatorWarning => [UNVERIFIED, { channel, set: key }]),
    ...channels.flatMap(({ name, missingConfig }): OperatorWarning[] =>
      missingConfig ? [['a channel cannot work as it is configured', { channel: name, missing: missingConfig }]] : [],
    ),
    ...config.leftOut.map(
      ({ section, feature, build }): OperatorWarning => [`[${section}] is configured, but this build leaves ${feature} out`, { build }],
    ),
    ...leftOutFiles(runtime.dataDir, compiled).map(
      ({ file, feature, build }): OperatorWarning => [`${file} exists, but this build leaves ${feature} out`, { build }],
    ),
    ...features.flatMap(({ feature, state, reason }): OperatorWarning[] =>
      state === 'failed' ? [['a feature failed', { feature, reason }]] : [],
    ),
  ]
}

/** Logs the warnings about the configuration in force, except those in `known`. */
export function logWarnings(runtime: OpenRuntime, known: readonly OperatorWarning[] = []): void {
  const logged = new Set(known.map((warning) => JSON.stringify(warning)))
  for (const warning of operatorWarnings(runtime)) {
    if (!logged.has(JSON.stringify(warning))) runtime.log.warn(...warning)
  }
}
