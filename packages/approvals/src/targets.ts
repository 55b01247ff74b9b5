/** Prompt targets: the conversation a question comes from, then the configured or named targets. */

import { conversationOf, TARGETS } from '@sluice/config'
import {
  type Address,
  type ApprovalPrompt,
  type ApprovalRequest,
  type AskedTarget,
  type CatalogueId,
  type Channel,
  type FeatureId,
  howToGet,
  ROWS,
} from '@sluice/sdk'
import { ANY_ACCOUNT, isSameAccount } from './open-approvals.ts'

/** Every subscriber of events gets the messages of this target. */
const BROADCAST = 'dashboard'

export interface Conversation {
  readonly channel: Channel
  /** Empty for the account that the channel itself chooses. */
  readonly account: string
  readonly to: Address
}

/** A target by its name: its conversation, or the reason why it has none. */
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

export interface TargetOptions {
  /** The channels that are ready. */
  channels(): readonly Channel[]
  features(): readonly CarrierStatus[]
}

/** Looks up each name once and ignores letter case. An unknown name is `unavailable`. `to` replaces the configured conversations. */
export function targetsOf(names: readonly string[], to: string | undefined, options: TargetOptions): readonly Target[] {
  const seen = new Set<string>()
  return names.flatMap((name): Target[] => {
    const lower = name.toLowerCase()
    const key = conversationOf(name) ? name : lower
    if (seen.has(key)) return []
    seen.add(key)
    return [{ name, ...lookUp(name, lower, to, options) }]
  })
}

function lookUp(
  name: string,
  lower: string,
  to: string | undefined,
  { channels, features }: TargetOptions,
): { readonly conversation: Conversation } | { readonly answer: AskedTarget } {
  const unavailable = (detail: string) => ({ answer: { channel: name, status: 'unavailable', detail } }) as const
  if (lower === BROADCAST)
    return { answer: { channel: name, status: 'broadcast', detail: 'sent to every subscriber of /api/events and /ws/events' } }
  const named = conversationOf(name)
  if (named) {
    // The word of the specification, such as messenger, names a channel as its own name does.
    const carrier =
      channels().find(({ name }) => name === named.channel) ??
      channels().find(({ notifications }) => notifications?.target === named.channel)
    return carrier
      ? { conversation: { channel: carrier, account: ANY_ACCOUNT, to: { to: to ?? named.to } } }
      : unavailable(`the channel '${named.channel}' is not connected`)
  }
  const channel = channels().find(({ notifications }) => notifications?.target === lower)
  if (!channel?.notifications) return unavailable(unavailableReason(lower, features()))
  const { account, key, to: configured } = channel.notifications
  const address = to === undefined ? configured : { to }
  if (!address) return unavailable(`no conversation is configured for it: set ${key}, or name one by channel_id`)
  return { conversation: { channel, account, to: address } }
}

/** Says why no channel of this build serves the target. */
function unavailableReason(target: string, features: readonly CarrierStatus[]): string {
  const [carrier]: readonly CatalogueId[] = ROWS.flatMap(([id, row]) => (row.target === target ? [id] : []))
  if (carrier === undefined) return `no such channel; there are ${TARGETS.join(', ')}`
  const status = features.find(({ feature }) => feature === carrier)
  if (!status?.compiled) return `this build has no ${carrier}; to get it, ${howToGet(carrier)}`
  return `${carrier} is ${status.state}${status.reason === null ? '' : `: ${status.reason}`}`
}

export interface PromptTargetOptions extends TargetOptions {
  /** The targets that are asked where a question names none. */
  targets(): readonly string[]
}

/** `isOrigin`: the question came from this conversation. */
export type PromptConversation = Conversation & { readonly isOrigin: boolean }

export interface PromptTargets {
  /** The conversations to ask, without duplicates, so that each one gets one prompt. */
  readonly conversations: readonly PromptConversation[]
  /** The outcome for each target. The `queued` ones are the conversations, in the same order. */
  readonly asked: readonly AskedTarget[]
}

export function promptTargets(
  { origin, channels, channelId }: Pick<ApprovalRequest, 'origin' | 'channels' | 'channelId'>,
  options: PromptTargetOptions,
): PromptTargets {
  const asked: AskedTarget[] = []
  const conversations: PromptConversation[] = []
  const add = (name: string, conversation: PromptConversation): void => {
    if (conversations.some((other) => isSamePlace(other, conversation))) return
    conversations.push(conversation)
    asked.push({ channel: name, status: 'queued', detail: 'the prompt is in the outbox' })
  }
  const channel = origin && options.channels().find(({ name }) => name === origin.channel)
  if (origin && channel) add(channel.name, { channel, account: origin.account, to: origin.to, isOrigin: true })
  for (const target of targetsOf(channels ?? options.targets(), channelId, options)) {
    if ('answer' in target) asked.push(target.answer)
    else add(target.name, { ...target.conversation, isOrigin: false })
  }
  return { asked, conversations }
}

/** Whether the conversation of a prompt is one of `[approvals] channels`, as these are configured now. */
export const isOperatorsConversation = (
  { channel, account, to }: Pick<ApprovalPrompt, 'channel' | 'account' | 'to'>,
  options: PromptTargetOptions,
): boolean =>
  targetsOf(options.targets(), undefined, options).some(
    (target) =>
      'conversation' in target &&
      target.conversation.channel.name === channel &&
      isSameAccount(target.conversation.account, account) &&
      target.conversation.to.to === to.to,
  )

const isSamePlace = (a: Conversation, b: Conversation): boolean =>
  a.channel.name === b.channel.name && isSameAccount(a.account, b.account) && a.to.to === b.to.to && a.to.thread === b.to.thread
