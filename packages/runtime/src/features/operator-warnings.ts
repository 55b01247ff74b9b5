/** Warnings that an operator should read before the first message arrives: at the start, and after a reload where they are new. */

import {
  agentsSection,
  gatewaySection,
  isLoopbackHost,
  isOpenToAll,
  leftOutFiles,
  OPEN_TO_ALL,
  PLAIN_HTTP,
  policySection,
  unsignedChannels,
} from '@sluice/config'
import { nearestName } from '@sluice/kit'
import type { LogFields, Logger } from '@sluice/sdk'
import type { Snapshot } from './snapshot.ts'

export type OperatorWarning = readonly [message: string, fields?: LogFields]

const UNVERIFIED = 'requests to this channel are not verified: any client that reaches the address can post as the platform'

/** The warnings about the configuration of a snapshot, and about files in the data directory. */
export function operatorWarnings(snapshot: Snapshot, dataDir: string): OperatorWarning[] {
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
    ...leftOutFiles(dataDir, compiled).map(
      ({ file, feature, build }): OperatorWarning => [`${file} exists, but this build leaves ${feature} out`, { build }],
    ),
    ...features.flatMap(({ feature, state, reason }): OperatorWarning[] =>
      state === 'failed' ? [['a feature failed', { feature, reason }]] : [],
    ),
  ]
}

/** Logs the warnings that are not in `known`. */
export function logWarnings(log: Logger, warnings: readonly OperatorWarning[], known: readonly OperatorWarning[] = []): void {
  const logged = new Set(known.map((warning) => JSON.stringify(warning)))
  for (const warning of warnings) {
    if (!logged.has(JSON.stringify(warning))) log.warn(...warning)
  }
}

const TOOL_LISTS = ['auto_approve', 'always_ask'] as const

/**
 * The names in the policies and tool lists of the agents that no tool has, as one sentence each: a mistyped name asks for no approval, or approves no
 * tool. Tools that this build leaves out are known.
 */
export function unknownToolNames({ config, registry }: Snapshot): string[] {
  const known = [...registry.tools.keys()]
  const unknownIn = (path: string, names: readonly string[] = []) => {
    const unknown = names.filter((name) => name !== '*' && !known.includes(name))
    return unknown.map((name) => {
      const near = nearestName(name, known)
      const hint = near === undefined ? '' : `; did you mean "${near}"?`
      return `\`${path}\` names the tool "${name}", which does not exist${hint}`
    })
  }
  const policy = config.core(policySection)
  const ofAgents = Object.entries(config.core(agentsSection)).flatMap(([name, { tools, policy: own }]) => [
    ...unknownIn(`agents.${name}.tools`, tools),
    ...TOOL_LISTS.flatMap((key) => unknownIn(`agents.${name}.policy.${key}`, own?.[key])),
  ])
  return [...TOOL_LISTS.flatMap((key) => unknownIn(`security.policy.${key}`, policy[key])), ...ofAgents]
}
