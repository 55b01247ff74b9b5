/** The messages of an approval: the prompts that ask, the confirmations of its decision, and notices to late senders. */
import { randomUUID } from 'node:crypto'
import { splitText } from '@sluice/kit'
import {
  type Address,
  type Approval,
  type ApprovalPrompt,
  type AskedTarget,
  type Button,
  type Channel,
  type GatewayTexts,
  gatewayText,
  type NewApproval,
  type NewReply,
  type Outbound,
} from '@sluice/sdk'
import { decidedPart, promptParts } from './prompt-text.ts'
import { approveValue, rejectValue } from './replies.ts'
import type { Conversation, PromptConversation, PromptTargets } from './targets.ts'

const TOPIC_CHARS_MAX = 100
const TOPIC_NAME_CHARS_MAX = 80

/** The prompts of each conversation, in the order of the conversations. */
export const planPrompts = (
  { conversations }: PromptTargets,
  approval: NewApproval,
  texts: GatewayTexts,
): readonly (readonly NewReply[])[] => conversations.map((conversation) => promptsFor(approval, conversation, texts))

/** A prompt opens a thread only in the conversation for notifications, because people already talk in the origin of the question. */
function promptsFor(
  approval: NewApproval,
  { channel, account, to, isOrigin }: PromptConversation,
  texts: GatewayTexts,
): readonly NewReply[] {
  const parts = promptParts(approval, channel.limits, texts)
  const { replyTo: _, ...unquoted } = to
  const name = Array.from(approval.workflow).slice(0, TOPIC_NAME_CHARS_MAX).join('')
  // Discord refuses longer names of threads.
  const topic = Array.from(gatewayText('approval_topic', texts, { name }))
    .slice(0, TOPIC_CHARS_MAX)
    .join('')
  return parts.map((text, index) => ({
    ...message({ channel: channel.name, account, to: index === 0 ? to : unquoted, text, createdAtMs: approval.createdAtMs }),
    part: index + 1,
    parts: parts.length,
    ...(index === parts.length - 1 && {
      extras: { buttons: buttonsOf(approval.token, texts), ...(!isOrigin && { topic }) },
    }),
  }))
}

/** The outcome for each target once the prompts are queued. `numbers` are the outbox numbers of all prompts, in their order. */
export function askedTargets(
  { asked }: PromptTargets,
  prompts: readonly (readonly NewReply[])[],
  numbers: readonly number[],
): readonly AskedTarget[] {
  let group = 0
  let at = 0
  return asked.map((target) => {
    if (target.status !== 'queued') return target
    const { length } = prompts[group++] ?? []
    const outbox = numbers.slice(at, at + length)
    at += length
    return { ...target, outbox }
  })
}

/** Returns a short text as one message, cut at the platform's limit. */
export function noticeTo({ channel, account, to }: Conversation, text: string, nowMs: number): NewReply {
  const [first = text] = splitText(text, channel.limits)
  return message({ channel: channel.name, account, to, text: first, createdAtMs: nowMs })
}

/** Confirms the decision in each conversation with a prompt; where the platform can edit, the prompt shows it and loses its buttons. */
export function confirmations(
  approval: Approval,
  { channels, texts, nowMs }: { readonly channels: readonly Channel[]; readonly texts: GatewayTexts; readonly nowMs: number },
): readonly NewReply[] {
  const text = verdictText(approval, texts)
  return promptGroups(approval).flatMap((group) => {
    const last = group.at(-1)
    const channel = channels.find(({ name }) => name === last?.channel)
    if (!last || !channel) return []
    const { account, providerId, to } = last
    const notice = noticeTo({ channel, account, to: confirmationAddress(group, last, channel) }, text, nowMs)
    if (providerId === null || !channel.update) return [notice]
    const edited = decidedPart(approval, text, channel.limits, texts)
    const edit = message({ channel: channel.name, account, to, text: edited, createdAtMs: nowMs })
    return [notice, { ...edit, extras: { edits: providerId } }]
  })
}

/** Returns a prompt that is sent after the decision. It shows the decision and has no buttons. */
export function decidedPrompt(
  { buttons: _, topic: __, ...prompt }: Outbound,
  approval: Approval,
  limits: Channel['limits'],
  texts: GatewayTexts,
): Outbound {
  return { ...prompt, text: decidedPart(approval, verdictText(approval, texts), limits, texts) }
}

export interface ActorNames {
  /** Returns an actor, as in `Approval.by`, as people read it. */
  actorName(by: string): Promise<string>
}

/** Returns the approval with the name of the person who decided it, for texts. */
export const named = async (approval: Approval, { actorName }: ActorNames): Promise<Approval> =>
  approval.by === null ? approval : { ...approval, by: await actorName(approval.by) }

type Verdict = Pick<Approval, 'state' | 'by' | 'feedback'>

/** Describes the state of an approval in one sentence. */
function verdictText({ state, by, feedback }: Verdict, texts: GatewayTexts): string {
  if (state === 'pending' || state === 'expired') return gatewayText(state, texts)
  if (state === 'cancelled' && by === 'system') return gatewayText('withdrawn', texts)
  const reason = feedback === null ? '' : `: ${feedback}`
  return `${gatewayText(state, texts, { by: by ?? '' })}${reason}`
}

/** The notice to a sender who answers a decided approval. */
export function lateText(approval: Verdict, texts: GatewayTexts): string {
  const decision = verdictText(approval, texts)
  return gatewayText('already_decided', texts, { decision: `${decision.charAt(0).toLowerCase()}${decision.slice(1)}` })
}

/** The messages of each prompt; the last one has the buttons. */
export function promptGroups({ prompts }: Approval): readonly (readonly ApprovalPrompt[])[] {
  const groups = Map.groupBy(prompts, ({ channel, account, to }) => JSON.stringify([channel, account, to.to, to.thread]))
  return [...groups.values()]
}

/** Returns the address of a confirmation: the thread that the prompt opened, else a reply to the prompt. */
function confirmationAddress(group: readonly ApprovalPrompt[], { to, providerId }: ApprovalPrompt, { notifications }: Channel): Address {
  if (!notifications || providerId === null) return to
  // A prompt that is a reply itself has opened no thread.
  const isOrigin = to.thread !== undefined || group.some((prompt) => prompt.to.replyTo !== undefined)
  if (isOrigin || !notifications.opensThreads) return { ...to, replyTo: providerId }
  return { to: to.to, thread: providerId }
}

const buttonsOf = (token: string, texts: GatewayTexts): readonly Button[] => [
  { label: gatewayText('button_approve', texts), value: approveValue(token), tone: 'good' },
  { label: gatewayText('button_reject', texts), value: rejectValue(token), tone: 'bad' },
]

const message = (about: Pick<NewReply, 'channel' | 'account' | 'to' | 'text' | 'createdAtMs'>): NewReply => ({
  part: 1,
  parts: 1,
  clientId: randomUUID(),
  turnId: null,
  ...about,
})
