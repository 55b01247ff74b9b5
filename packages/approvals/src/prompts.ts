/** What goes out about an approval: the prompts that ask, and what is said once it is decided. */
import { randomUUID } from 'node:crypto'
import { splitText } from '@sluice/kit'
import type { Address, Approval, ApprovalPrompt, Button, Channel, NewApproval, NewReply, Outbound } from '@sluice/sdk'
import { approveValue, rejectValue } from './answers.ts'
import type { AskedConversation } from './asking.ts'
import { decidedPart, promptParts } from './prompt-parts.ts'
import type { Conversation } from './targets.ts'

const TOPIC_NAME_CHARS_MAX = 80

/** One whole message. */
const message = (about: Pick<NewReply, 'channel' | 'account' | 'to' | 'text' | 'createdAtMs'>): NewReply => ({
  part: 1,
  parts: 1,
  clientId: randomUUID(),
  turnId: null,
  ...about,
})

/** A short text as one message: what does not fit is left out. */
export function noticeTo({ channel, account, to }: Conversation, text: string, nowMs: number): NewReply {
  const [first = text] = splitText(text, channel.limits)
  return message({ channel: channel.name, account, to, text: first, createdAtMs: nowMs })
}

const buttonsOf = (token: string): readonly Button[] => [
  { label: 'Approve', value: approveValue(token), tone: 'good' },
  { label: 'Reject', value: rejectValue(token), tone: 'bad' },
]

/** A thread of its own is opened only where notifications go: elsewhere people are talking already. */
export function promptsFor(approval: NewApproval, { channel, account, to, isOrigin }: AskedConversation): readonly NewReply[] {
  const parts = promptParts(approval, channel.limits)
  const { replyTo: _, ...unquoted } = to
  const topic = `Approval: ${Array.from(approval.workflow).slice(0, TOPIC_NAME_CHARS_MAX).join('')}`
  return parts.map((text, index) => ({
    ...message({ channel: channel.name, account, to: index === 0 ? to : unquoted, text, createdAtMs: approval.createdAtMs }),
    part: index + 1,
    parts: parts.length,
    ...(index === parts.length - 1 && {
      extras: { buttons: buttonsOf(approval.token), ...(!isOrigin && { topic }) },
    }),
  }))
}

const WITHDRAWN = 'Withdrawn: the turn or run that asked has ended, and an answer would start nothing'

/** Who decided, in one sentence. */
export function verdictText({ state, by, feedback }: Pick<Approval, 'state' | 'by' | 'feedback'>): string {
  const said = feedback === null ? '' : `: ${feedback}`
  switch (state) {
    case 'approved':
      return `Approved by ${by}${said}`
    case 'rejected':
      return `Rejected by ${by}${said}`
    case 'cancelled':
      return by === 'system' ? WITHDRAWN : `Cancelled by ${by}${said}`
    case 'expired':
      return 'Expired: nobody answered in time'
    case 'pending':
      return 'Still waiting for an answer'
  }
}

/** For those who answer what is decided. */
export function lateText(approval: Pick<Approval, 'state' | 'by' | 'feedback'>): string {
  const verdict = verdictText(approval)
  return approval.state === 'expired'
    ? 'Already expired: nobody answered in time'
    : `Already ${verdict.charAt(0).toLowerCase()}${verdict.slice(1)}`
}

/** Confirms the decision where it was asked for; on platforms that can edit, the prompt says it too and loses its buttons. */
export function confirmations(approval: Approval, channels: readonly Channel[], nowMs: number): readonly NewReply[] {
  const text = verdictText(approval)
  return promptGroups(approval).flatMap((group) => {
    const last = group.at(-1)
    const channel = channels.find(({ name }) => name === last?.channel)
    if (!last || !channel) return []
    const { account, providerId, to } = last
    const said = noticeTo({ channel, account, to: placeOf(group, last, channel) }, text, nowMs)
    if (providerId === null || !channel.update) return [said]
    const edited = decidedPart(approval, text, channel.limits)
    const edit = message({ channel: channel.name, account, to, text: edited, createdAtMs: nowMs })
    return [said, { ...edit, extras: { edits: providerId } }]
  })
}

/** A prompt that goes out after the decision: it says so, and asks nobody. */
export function overtaken({ buttons: _, topic: __, ...prompt }: Outbound, approval: Approval, limits: Channel['limits']): Outbound {
  return { ...prompt, text: decidedPart(approval, verdictText(approval), limits) }
}

/** The parts of each prompt, the one with the buttons last. */
function promptGroups({ prompts }: Approval): readonly (readonly ApprovalPrompt[])[] {
  const groups = new Map<string, ApprovalPrompt[]>()
  for (const prompt of prompts) {
    const place = JSON.stringify([prompt.channel, prompt.account, prompt.to.to, prompt.to.thread])
    const group = groups.get(place) ?? []
    groups.set(place, group)
    group.push(prompt)
  }
  return [...groups.values()]
}

/** Where it is said: in the prompt's thread, else as an answer to the prompt. */
function placeOf(group: readonly ApprovalPrompt[], { to, providerId }: ApprovalPrompt, { notifications }: Channel): Address {
  if (!notifications || providerId === null) return to
  // A prompt that answers somebody stands where people were talking, and has opened no thread.
  const isOrigin = to.thread !== undefined || group.some((prompt) => prompt.to.replyTo !== undefined)
  if (isOrigin || notifications.target === 'messenger') return { ...to, replyTo: providerId }
  return { to: to.to, thread: providerId }
}
