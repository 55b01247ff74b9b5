/** The dispatch targets of §2.5: which channel each name means now, and which conversation of it is told. */

import { type NotificationTarget, TARGETS } from '@sluice/config'
import { type Address, type AskedTarget, buildHint, type CatalogueId, type Channel, type FeatureId } from '@sluice/sdk'

/** Which package carries the messages of each target; null: every subscriber is one. */
const CARRIERS = {
  dashboard: null,
  community: 'channel-discord',
  workspace: 'channel-slack',
  messenger: 'channel-telegram',
} as const satisfies Readonly<Record<NotificationTarget, CatalogueId | null>>

/** Somebody who can be told something. */
export interface Conversation {
  readonly channel: Channel
  readonly account: string
  readonly to: Address
}

/** One name that was asked for: where it leads, or what is answered for it. */
export type Target = { readonly name: string } & ({ readonly conversation: Conversation } | { readonly answer: AskedTarget })

/** The state of the feature that carries a target's messages. */
export interface CarrierStatus {
  readonly feature: FeatureId
  readonly compiled: boolean
  readonly state: string
  /** Why the feature is not ready; null when it is. */
  readonly reason: string | null
  /** How to build the feature in; null when it is compiled in. */
  readonly build: string | null
}

export interface TargetDeps {
  /** Those that are ready. */
  channels(): readonly Channel[]
  features(): readonly CarrierStatus[]
}

/** Names in any case, each once. A name nobody knows fails nothing. `to` overrides the configured conversations. */
export function targetsOf(names: readonly string[], to: string | undefined, deps: TargetDeps): readonly Target[] {
  const known = new Set<string>()
  return names.flatMap((name): Target[] => {
    const lower = name.toLowerCase()
    if (known.has(lower)) return []
    known.add(lower)
    return [{ name, ...lookUp(name, lower, to, deps) }]
  })
}

function lookUp(
  name: string,
  lower: string,
  to: string | undefined,
  { channels, features }: TargetDeps,
): { readonly conversation: Conversation } | { readonly answer: AskedTarget } {
  const unavailable = (detail: string) => ({ answer: { channel: name, status: 'unavailable', detail } }) as const
  const carrier = Object.hasOwn(CARRIERS, lower) ? CARRIERS[lower as keyof typeof CARRIERS] : undefined
  if (carrier === undefined) return unavailable(`no such channel; there are ${TARGETS.join(', ')}`)
  if (carrier === null)
    return { answer: { channel: name, status: 'broadcast', detail: 'sent to every subscriber of /api/events and /ws/events' } }
  const channel = channels().find(({ notifications }) => notifications?.target === lower)
  if (!channel?.notifications) return unavailable(whyAbsent(carrier, features()))
  const { account, key, to: configured } = channel.notifications
  const address = to === undefined ? configured : { to }
  if (!address) return unavailable(`no conversation is configured for it: set ${key}, or name one by channel_id`)
  return { conversation: { channel, account, to: address } }
}

function whyAbsent(carrier: CatalogueId, features: readonly CarrierStatus[]): string {
  const status = features.find(({ feature }) => feature === carrier)
  if (!status?.compiled) return `this build has no ${carrier}: ${status?.build ?? buildHint(carrier)}`
  return `${carrier} is ${status.state}${status.reason === null ? '' : `: ${status.reason}`}`
}
