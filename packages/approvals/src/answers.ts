/** Who answers a question in a chat. */
import { type People, standingOfSender } from '@sluice/delivery'
import {
  type Answerer,
  type Approval,
  type ApprovalKey,
  type ApprovalStore,
  type Channel,
  type Inbound,
  isAtLeast,
  parseSenderKey,
  type StartedMessage,
  senderKey,
  sourceOfMessage,
} from '@sluice/sdk'
import { answeredPrompt, isSamePerson, type ReplyMatcher } from './replies.ts'
import { isOperatorsConversation, type PromptTargetOptions } from './targets.ts'

export interface Answering extends PromptTargetOptions {
  channels(): readonly Channel[]
  operators(channel: string): readonly string[]
  readonly people: Pick<People, 'standing' | 'personOf'>
}

/**
 * The sender of a reply: an operator whom an allowlist entry names, in a conversation of `[approvals] channels`. Among the
 * people in a conversation, a question about the call of one person asks this person.
 */
export function answererOf(
  approval: Pick<Approval, 'prompts' | 'sources' | 'person'>,
  { channel: name, message }: Pick<StartedMessage, 'channel' | 'message'>,
  options: Answering,
): Answerer {
  const channel = options.channels().find((candidate) => candidate.name === name)
  if (!channel) return { standing: 'unverified', isAsked: false }
  const account = senderKey(name, message)
  const own = options.people.standing(account, standingOfSender(channel, message, options.operators(name)))
  const prompt = answeredPrompt(approval, name, message)
  const isOperator = isAtLeast(own, 'listed') && prompt !== undefined && isOperatorsConversation(prompt, options)
  return {
    standing: isOperator ? 'operator' : own,
    isAsked: prompt !== undefined && isPersonOf(approval, channel, message, options),
    source: sourceOf(approval, { channel: name, sender: message.sender, account }, options),
  }
}

interface Matching extends Answering {
  readonly store: Pick<ApprovalStore, 'get'>
  readonly people: Answering['people'] & Pick<People, 'refresh'>
  readonly matcher: Pick<ReplyMatcher, 'matchPress'>
}

/** Whether the sender of a reply to the approval `key`, or of a pressed button, decides it as an operator. */
export async function answersAsOperator(
  options: Matching,
  { channel, message, key }: { readonly channel: Channel; readonly message: Inbound; readonly key?: ApprovalKey | undefined },
): Promise<boolean> {
  const approval = key ? await options.store.get(key) : (await options.matcher.matchPress(channel.name, message))?.approval
  if (!approval) return false
  await options.people.refresh()
  return answererOf(approval, { channel: channel.name, message }, options).standing === 'operator'
}

/** Whether a question is about the call of the sender of a message, or of a linked account of the sender, or of no person. */
function isPersonOf(
  { person }: Pick<Approval, 'person'>,
  channel: Channel,
  { account, sender }: Pick<Inbound, 'account' | 'sender'>,
  { people }: Answering,
): boolean {
  if (person === null || isSamePerson(channel, sender, person)) return true
  const own = senderKey(channel.name, { account, sender })
  return people.personOf(senderKey(channel.name, { account, sender: person }))?.some((one) => one.account === own) === true
}

/** Returns the source for a person: one of the linked accounts whose words the question is about, else the account itself. */
function sourceOf(
  { sources }: Pick<Approval, 'sources'>,
  { channel, sender, account }: { readonly channel: string; readonly sender: string; readonly account: string },
  { people }: Answering,
): string {
  const linked = people.personOf(account)?.flatMap((one) => parseSenderKey(one.account) ?? []) ?? []
  const own = sourceOfMessage(channel, sender)
  const all = [own, ...linked.map((one) => sourceOfMessage(one.channel, one.sender))]
  return all.find((source) => sources.includes(source)) ?? own
}
