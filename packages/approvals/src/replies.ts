/** Matches replies to approvals: by the message that is quoted, by its thread, by a pressed button, or without a quote. */

import { BoundedMap } from '@sluice/kit'
import {
  type Approval,
  type ApprovalKey,
  type ApprovalPrompt,
  type ApprovalStore,
  type Channel,
  type Clock,
  type Inbound,
  typedText,
} from '@sluice/sdk'
import { type Keywords, type Verdict, verdictOf } from './keywords.ts'
import { keyText } from './new-approval.ts'
import { ANY_ACCOUNT, isSameAccount, messageKey, type OpenApproval, type OpenApprovals, openApprovalOf } from './open-approvals.ts'

/** Decided approvals that are remembered, so that the sender of a late reply learns the decision. */
const DECIDED_MAX = 1000
/** Approvals with unsent prompts that are read from the store for one message. */
const UNSENT_READ_MAX = 16
/**
 * How long after a prompt began to be sent a keyword waits for the platform's id of it. People may see a prompt before the platform answers
 * the request. The messages of some channels wait behind the keyword, and platforms expect the answer to a webhook within 3 s.
 */
const SENDING_MS = 2000
const LOOK_MS = 50
const SENDING_MAX = 1000
/** Platforms give the time of a message by their own clock, some in whole seconds. */
const CLOCKS_DIFFER_MS = 5000

const APPROVE = 'a.'
const REJECT = 'r.'
const BUTTON_VALUE = /^[ar]\.[A-Za-z0-9_-]{1,40}$/

export const approveValue = (token: string): string => APPROVE + token
export const rejectValue = (token: string): string => REJECT + token

/** Returns the token in a button's value; undefined if the button belongs to no approval. */
export const tokenIn = (value: string): string | undefined => (BUTTON_VALUE.test(value) ? value.slice(APPROVE.length) : undefined)

type Message = Pick<Inbound, 'account' | 'sender' | 'to' | 'inReplyTo' | 'addressed'>

export interface Deciders {
  /** Reads which accounts belong to one person. */
  refresh(): Promise<void>
  /** Whether the sender of a message may decide a question that is put in its conversation. */
  mayDecide(open: OpenApproval, channel: Channel, inbound: Inbound): boolean
}

/** Resolves to the one of the questions whose hint the message quotes. */
type QuotedHint = (channel: Channel, inbound: Inbound, questions: readonly OpenApproval[]) => Promise<OpenApproval | undefined>

export class ReplyMatcher {
  readonly #store: Pick<ApprovalStore, 'get' | 'byToken'>
  readonly #open: OpenApprovals
  readonly #deciders: Deciders
  readonly #clock: Clock
  readonly #quotedHint: QuotedHint
  /** When a prompt of an approval last began to be sent, by the clock's `monotonicMs`. */
  readonly #sendingSince = new BoundedMap<string, number>(SENDING_MAX)
  /** Decided approvals, by each message that asked. */
  readonly #decided = new BoundedMap<string, OpenApproval>(DECIDED_MAX)

  constructor(
    store: Pick<ApprovalStore, 'get' | 'byToken'>,
    open: OpenApprovals,
    deciders: Deciders,
    clock: Clock,
    quotedHint: QuotedHint,
  ) {
    this.#quotedHint = quotedHint
    this.#store = store
    this.#open = open
    this.#deciders = deciders
    this.#clock = clock
  }

  /**
   * Returns the approval that a text answers, open or recently decided; undefined for any other text. Call it only for messages of
   * allowed senders. Returns no promise while no approval is open, because every message is matched.
   */
  match(channel: Channel, inbound: Inbound): ApprovalKey | undefined | Promise<ApprovalKey | undefined> {
    return this.#open.size === 0 && this.#decided.size === 0 ? undefined : this.#find(channel, inbound)
  }

  /** Returns the approval of the pressed button and its decision; undefined if the button is on no prompt of the conversation. */
  async matchPress(
    channel: string,
    { account, to, pressed }: Inbound,
  ): Promise<{ readonly approval: Approval; readonly verdict: Verdict } | undefined> {
    const token = pressed && tokenIn(pressed.value)
    if (!pressed || token === undefined) return undefined
    const approval = await this.#store.byToken(token)
    const isItsButton = approval?.prompts.some(
      (prompt) =>
        isWhere({ account, to }, channel, prompt) &&
        (prompt.providerId === null || pressed.message === '' || prompt.providerId === pressed.message),
    )
    if (!approval || !isItsButton) return undefined
    return { approval, verdict: { approved: pressed.value.startsWith(APPROVE), feedback: null } }
  }

  /** Call it when a prompt of the approval is about to be sent. */
  sending(key: ApprovalKey): void {
    this.#sendingSince.set(keyText(key), this.#clock.monotonicMs())
  }

  /** Remembers a decided approval. */
  remember(approval: Approval): void {
    const decided = openApprovalOf(approval)
    for (const { channel, account, providerId } of decided.prompts)
      if (providerId !== null) this.#decided.set(messageKey(channel, account, providerId), decided)
  }

  /**
   * Resolves to the approvals that are open in the conversation of a message that decides nothing, if one of them concerns its sender, or
   * would be decided by a keyword alone of this sender if it were the only one.
   */
  async openQuestions(channel: Channel, inbound: Inbound): Promise<readonly OpenApproval[]> {
    await this.#deciders.refresh()
    const there = this.#at(channel, inbound)
    return there.some((open) => inbound.sender === open.person || this.#mayOmitQuote(channel, inbound, open)) ? there : []
  }

  /** Whether an approval is open in the conversation of a message. */
  isAsking(channel: Channel, inbound: Inbound): boolean {
    return this.#open.size > 0 && this.#at(channel, inbound).length > 0
  }

  #at({ name: channel }: Channel, { account, to }: Inbound): readonly OpenApproval[] {
    return [...this.#open.at({ channel, account, to })]
  }

  async #find(channel: Channel, inbound: Inbound): Promise<OpenApproval | undefined> {
    const { name } = channel
    for (const id of namedMessages(inbound)) {
      const named = this.#open.ofMessage(name, inbound.account, id) ?? this.#decidedOf(name, inbound.account, id)
      if (named && answers(named, channel, inbound)) return named
    }
    const hinted = await this.#matchHint(channel, inbound)
    if (hinted) return hinted
    // Reads prompts that were just sent, also by another process, which a keyword alone may answer.
    let justSent = await this.#matchJustSent(channel, inbound)
    while (!justSent && this.#isBeingSent(channel, inbound)) {
      await this.#clock.sleep(LOOK_MS)
      justSent = await this.#matchJustSent(channel, inbound)
    }
    if (justSent || !this.#at(channel, inbound).some((open) => verdictOf(typedText(inbound), open))) return justSent
    await this.#deciders.refresh()
    return this.#matchWithoutQuote(channel, inbound)
  }

  /**
   * Whether a text is a keyword alone of a question whose prompt has no platform id in its conversation yet, and may be seen there. A prompt
   * that waits, such as for the limit of a platform, is seen by nobody.
   */
  #isBeingSent(channel: Channel, inbound: Inbound): boolean {
    const nowMs = this.#clock.monotonicMs()
    return this.#at(channel, inbound).some(
      (open) =>
        nowMs - (this.#sendingSince.get(keyText(open)) ?? Number.NEGATIVE_INFINITY) < SENDING_MS &&
        isBareWord(inbound, open) &&
        open.prompts.some((prompt) => prompt.providerId === null && isWhere(inbound, channel.name, prompt)) &&
        !open.prompts.some((prompt) => prompt.providerId !== null && isWhere(inbound, channel.name, prompt)),
    )
  }

  /** Returns the open question of the conversation whose hint the message quotes, if the text decides it. */
  async #matchHint(channel: Channel, inbound: Inbound): Promise<OpenApproval | undefined> {
    if (inbound.inReplyTo === undefined) return undefined
    const decidable = this.#at(channel, inbound).filter((open) => verdictOf(typedText(inbound), open))
    return decidable.length === 0 ? undefined : this.#quotedHint(channel, inbound, decidable)
  }

  #decidedOf(channel: string, account: string, id: string): OpenApproval | undefined {
    return this.#decided.get(messageKey(channel, account, id)) ?? this.#decided.get(messageKey(channel, ANY_ACCOUNT, id))
  }

  /**
   * Returns the only approval that is open in the conversation, if the message clearly decides it: in a conversation with one person who
   * may decide it, in the thread that the prompt was put into, or, on a platform without quotes, from the person whom the question
   * concerns or in a conversation of operators. Questions that others decide count too: the sender sees them and may mean one of them.
   */
  #matchWithoutQuote(channel: Channel, inbound: Inbound): OpenApproval | undefined {
    const [only, ...others] = this.#at(channel, inbound)
    if (!only || others.length > 0 || isOlder(inbound, channel, only) || !this.#mayOmitQuote(channel, inbound, only)) return undefined
    return isClear(typedText(inbound), unquotedKeywords(channel, inbound, only)) ? only : undefined
  }

  #mayOmitQuote(channel: Channel, inbound: Inbound, open: OpenApproval): boolean {
    return mayOmitQuote(inbound, channel, open, this.#deciders.mayDecide(open, channel, inbound))
  }

  /** Reads approvals whose prompts are being sent: a reply may arrive before the platform id of its prompt is known here. */
  async #matchJustSent(channel: Channel, inbound: Inbound): Promise<OpenApproval | undefined> {
    const candidates = [...this.#open.unsent(channel.name, inbound.account)].filter((candidate) => verdictOf(typedText(inbound), candidate))
    for (const candidate of candidates.slice(0, UNSENT_READ_MAX)) {
      const approval = await this.#store.get(candidate)
      if (approval?.state !== 'pending') continue
      const fresh = this.#open.set(approval)
      if (answers(fresh, channel, inbound)) return fresh
    }
    return undefined
  }
}

/** Returns the prompt that the message answers; undefined where no prompt is in its conversation. */
export const answeredPrompt = ({ prompts }: Pick<Approval, 'prompts'>, channel: string, message: Message): ApprovalPrompt | undefined =>
  prompts.find((prompt) => quotesPrompt(message, channel, prompt)) ?? prompts.find((prompt) => isWhere(message, channel, prompt))

/** Whether a message is in the conversation of a prompt, or in the thread below it. */
const isWhere = ({ account, to }: Pick<Message, 'account' | 'to'>, channel: string, prompt: ApprovalPrompt): boolean =>
  prompt.channel === channel && isSameAccount(prompt.account, account) && (isConversationOf(to.to, prompt) || prompt.providerId === to.to)

/** Whether the whole text is a keyword of the question. */
export const isBareWord = (inbound: Inbound, keywords: Keywords): boolean => verdictOf(typedText(inbound), keywords)?.feedback === null

const answers = (candidate: OpenApproval, channel: Channel, inbound: Inbound): boolean =>
  candidate.prompts.some((prompt) => quotesPrompt(inbound, channel.name, prompt)) && verdictOf(typedText(inbound), candidate) !== undefined

/**
 * Returns the keywords that decide without a quote. In a direct chat on a platform with quotes, only the first ones decide the question
 * of another person: a word such as "yes" may answer the agent, which goes on talking there.
 */
function unquotedKeywords(channel: Channel, { addressed, sender }: Inbound, open: OpenApproval): Keywords {
  const { approveKeywords, rejectKeywords, person } = open
  if (addressed !== 'direct' || !channel.notifications || (person !== null && isSamePerson(channel, sender, person))) return open
  return { approveKeywords: approveKeywords.slice(0, 1), rejectKeywords: rejectKeywords.slice(0, 1) }
}

/** A keyword alone, or the rejection that the prompt asks for. Any other text that begins with a keyword may be conversation. */
function isClear(text: string, candidate: Keywords): boolean {
  const verdict = verdictOf(text, candidate)
  if (!verdict || verdict.feedback === null) return verdict !== undefined
  return !verdict.approved && verdictOf(text, { approveKeywords: [], rejectKeywords: candidate.rejectKeywords.slice(0, 1) }) !== undefined
}

/** Returns the platform ids of the messages that a message may be a reply to. */
const namedMessages = ({ inReplyTo, to }: Message): readonly string[] =>
  [inReplyTo, to.thread, to.to].filter((id): id is string => id !== undefined)

/** Whether the message quotes the prompt or is in the thread that the prompt opened; a thread may be a conversation of its own. */
function quotesPrompt({ account, to, inReplyTo }: Message, channel: string, prompt: ApprovalPrompt): boolean {
  const { providerId } = prompt
  if (providerId === null || prompt.channel !== channel || !isSameAccount(prompt.account, account)) return false
  return to.to === providerId || (isConversationOf(to.to, prompt) && (inReplyTo === providerId || to.thread === providerId))
}

/**
 * Whether the prompt is in this conversation. Some platforms number the messages of each conversation by themselves; others make
 * the conversation a part of the message id, in another spelling than the configuration's.
 */
const isConversationOf = (conversation: string, { to, providerId }: Pick<ApprovalPrompt, 'to' | 'providerId'>): boolean =>
  conversation === to.to || providerId?.startsWith(`${conversation}:`) === true

/** Whether a message was written before the question was shown in its conversation, such as one that a platform brings late. */
function isOlder(inbound: Inbound, { name }: Channel, { prompts, createdAtMs }: OpenApproval): boolean {
  const there = prompts.filter((prompt) => isWhere(inbound, name, prompt))
  const shownAtMs = Math.min(...there.map(({ sentAtMs }) => sentAtMs ?? createdAtMs))
  return inbound.sentAtMs !== undefined && inbound.sentAtMs < shownAtMs - CLOCKS_DIFFER_MS
}

/** Whether a message in the conversation of a prompt may answer it without a quote. */
function mayOmitQuote(
  { to, sender, inReplyTo, addressed }: Message,
  channel: Channel,
  { person, prompts }: OpenApproval,
  mayDecide: boolean,
): boolean {
  const { notifications } = channel
  const quotesAnother = inReplyTo !== undefined && inReplyTo !== to.thread && !channel.quotesByOtherIds
  const isOfOther = person !== null && !isSamePerson(channel, sender, person)
  // The words of other people in a room are conversation.
  if (quotesAnother || (isOfOther && !mayDecide)) return false
  const isShown = prompts.some((prompt) => prompt.providerId !== null && prompt.channel === channel.name && isConversationOf(to.to, prompt))
  if (addressed === 'direct' && isShown && (mayDecide || (person !== null && !isOfOther))) return true
  // The prompt is in a thread. Where a message opens no thread, threads are rooms with other conversations, and people can quote.
  if (notifications) return to.thread !== undefined && notifications.opensThreads
  // A platform without notifications has neither quotes nor threads. Its conversations of operators have prompts without an account.
  if (prompts.some((prompt) => prompt.channel === channel.name && prompt.account === ANY_ACCOUNT && prompt.to.to === to.to)) return true
  // The address of a conversation with one person is that person.
  return isSamePerson(channel, sender, person ?? to.to)
}

/** Whether two names of senders of a channel are of one person. */
export function isSamePerson(channel: Channel, one: string, other: string): boolean {
  const normal = (name: string): string => channel.normalise?.(name) ?? name
  return normal(one) === normal(other)
}
