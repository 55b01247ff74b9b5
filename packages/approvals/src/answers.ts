/** Who answers a question in a chat. */
import { type People, standingOfSender } from '@sluice/delivery'
import {
  type Answerer,
  type Approval,
  type Channel,
  isAtLeast,
  parseSenderKey,
  type StartedMessage,
  senderKey,
  sourceOfMessage,
} from '@sluice/sdk'
import { answeredPrompt } from './replies.ts'
import { isOperatorsConversation, type PromptTargetOptions } from './targets.ts'

interface Answering extends PromptTargetOptions {
  channels(): readonly Channel[]
  operators(channel: string): readonly string[]
  readonly people: Pick<People, 'standing' | 'personOf'>
}

/** The sender of a reply: an operator in a conversation of `[approvals] channels`, where an entry of the allowlist names the sender. */
export function answererOf(
  approval: Pick<Approval, 'prompts' | 'sources'>,
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
    isAsked: prompt !== undefined,
    source: sourceOf(approval, { channel: name, sender: message.sender, account }, options),
  }
}

/** Returns the source that stands for a person: one of the linked accounts whose words the question is about, else the account itself. */
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
