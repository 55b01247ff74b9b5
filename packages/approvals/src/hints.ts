/** Tells people who write something else which questions wait for them, and how to decide them. */
import { BoundedMap, splitText } from '@sluice/kit'
import {
  type Approval,
  type ApprovalKey,
  type ApprovalStore,
  type Channel,
  type GatewayTexts,
  gatewayText,
  type Inbound,
  type OutboxStore,
} from '@sluice/sdk'
import { keyText } from './new-approval.ts'
import { isBareWord, type ReplyMatcher } from './replies.ts'

/** Conversations with their questions that are remembered as told. */
const TOLD_MAX = 10_000
/** The newest messages of a channel in which a quoted hint is looked for. */
const SENT_MAX = 200

export interface HintOptions {
  readonly store: Pick<ApprovalStore, 'get'>
  readonly matcher: Pick<ReplyMatcher, 'isAsking' | 'openQuestions'>
  /** Absent: no message quotes a hint. */
  readonly outbox: Pick<OutboxStore, 'list'> | undefined
  texts(): GatewayTexts
}

export class Hints {
  readonly #options: HintOptions
  readonly #told = new BoundedMap<string, true>(TOLD_MAX)

  constructor(options: HintOptions) {
    this.#options = options
  }

  /** See `DeliveryApprovals.hint`. Returns no promise where no question waits, because every message asks. */
  hint(channel: Channel, inbound: Inbound): Promise<string | undefined> | undefined {
    return this.#options.matcher.isAsking(channel, inbound) ? this.#hint(channel, inbound) : undefined
  }

  async #hint(channel: Channel, inbound: Inbound): Promise<string | undefined> {
    const { matcher, store, texts } = this.#options
    const questions = await matcher.openQuestions(channel, inbound)
    const [open] = questions
    // Of several questions, only a word that would decide one of them is about them.
    if (!open || (questions.length > 1 && !questions.some((one) => isBareWord(inbound, one)))) return undefined
    const told = JSON.stringify([channel.name, inbound.account, inbound.to.to, ...questions.map(keyText)])
    if (this.#told.has(told)) return undefined
    this.#told.set(told, true)
    if (questions.length > 1) return gatewayText('open_questions', texts(), { count: questions.length })
    const approval = await store.get(open)
    if (approval?.state !== 'pending') return undefined
    // The message waits behind a question about the sender's own turn.
    return hintText(inbound.sender === open.person ? 'open_question' : 'open_question_of_others', texts(), approval)
  }

  /**
   * Whether the message that `inReplyTo` names is a hint at this open question, in the same conversation. A hint that is older than the
   * question is about an earlier one with the same title.
   */
  async isQuoted(
    channel: Channel,
    { account, to, inReplyTo }: Pick<Inbound, 'account' | 'to' | 'inReplyTo'>,
    key: ApprovalKey,
  ): Promise<boolean> {
    const { outbox, store, texts } = this.#options
    if (inReplyTo === undefined || !outbox) return false
    const sent = await outbox.list({ channel: channel.name, limit: SENT_MAX })
    const said = sent.find((row) => row.providerId === inReplyTo && row.account === account && row.to.to === to.to)
    const approval = said ? await store.get(key) : undefined
    if (!said || approval?.state !== 'pending' || approval.prompts.some(({ number }) => number > said.number)) return false
    // Platforms with short messages cut hints.
    return (['open_question', 'open_question_of_others'] as const).some(
      (text) => splitText(hintText(text, texts(), approval), channel.limits)[0] === said.text,
    )
  }
}

function hintText(
  text: 'open_question' | 'open_question_of_others',
  texts: GatewayTexts,
  { title: question, approveKeywords: [approve = ''], rejectKeywords: [reject = ''] }: Approval,
): string {
  return gatewayText(text, texts, { question, approve, reject })
}
