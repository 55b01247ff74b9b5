/** Whom a question is put to: the conversation it came from, then the dispatch targets (§2.5). */
import type { AskedTarget, Channel, NewApproval, NewReply, Question } from '@sluice/sdk'
import { promptsFor } from './prompts.ts'
import { type Conversation, type TargetDeps, targetsOf } from './targets.ts'

export interface AskingDeps extends TargetDeps {
  /** The targets that are asked where a question names none. */
  targets(): readonly string[]
}

/** `isOrigin`: the question came from there. */
export type AskedConversation = Conversation & { readonly isOrigin: boolean }

export interface Asking {
  /** Each once; nobody is asked twice in one conversation. */
  readonly conversations: readonly AskedConversation[]
  /** What became of each target, `queued` for the conversations in their order. */
  readonly asked: readonly AskedTarget[]
}

export function askingOf({ origin, channels, channelId }: Pick<Question, 'origin' | 'channels' | 'channelId'>, deps: AskingDeps): Asking {
  const asked: AskedTarget[] = []
  const conversations: AskedConversation[] = []
  const add = (name: string, conversation: AskedConversation): void => {
    if (conversations.some((other) => isSamePlace(other, conversation))) return
    conversations.push(conversation)
    asked.push({ channel: name, status: 'queued', detail: 'the prompt is in the outbox' })
  }
  const channel: Channel | undefined = origin && deps.channels().find(({ name }) => name === origin.channel)
  if (origin && channel) add(channel.name, { channel, account: origin.account, to: origin.to, isOrigin: true })
  for (const target of targetsOf(channels ?? deps.targets(), channelId, deps)) {
    if ('answer' in target) asked.push(target.answer)
    else add(target.name, { ...target.conversation, isOrigin: false })
  }
  return { asked, conversations }
}

/** The prompts of each conversation, in their order. */
export const promptsOf = ({ conversations }: Asking, approval: NewApproval): readonly (readonly NewReply[])[] =>
  conversations.map((conversation) => promptsFor(approval, conversation))

/** What became of the targets once the prompts are queued: `numbers` are those of all of them, in their order. */
export function askedWith(
  { asked }: Asking,
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

const isSamePlace = (a: Conversation, b: Conversation): boolean =>
  a.channel.name === b.channel.name && a.account === b.account && a.to.to === b.to.to && a.to.thread === b.to.thread
