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
  type OutboxRow,
  type OutboxStore,
} from '@sluice/sdk'
import { keyText } from './new-approval.ts'
import type { OpenApproval } from './open-approvals.ts'
import { isBareWord, type ReplyMatcher } from './replies.ts'

/** Conversations with their questions that are remembered as told. */
const TOLD_MAX = 10_000
/** Some platforms number the messages of each conversation by themselves, so that several have the id of a quoted hint. */
const SAME_ID_MAX = 100

export interface HintOptions {
  readonly store: Pick<ApprovalStore, 'get'>
  readonly matcher: Pick<ReplyMatcher, 'isAsking' | 'openQuestions'>
  /** Absent: no message quotes a hint. */
  readonly outbox: Pick<OutboxStore, 'sentAs'> | undefined
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

  /** Resolves to the one of the open questions whose hint is the message that `inReplyTo` names, in the same conversation. */
  async quoted(
    channel: Channel,
    { account, to, inReplyTo }: Pick<Inbound, 'account' | 'to' | 'inReplyTo'>,
    questions: readonly OpenApproval[],
  ): Promise<OpenApproval | undefined> {
    const { outbox } = this.#options
    if (inReplyTo === undefined || !outbox || questions.length === 0) return undefined
    const sent = await outbox.sentAs(channel.name, inReplyTo, SAME_ID_MAX)
    const said = sent.find((row) => row.account === account && row.to.to === to.to)
    if (said) for (const question of questions) if (await this.#isHint(channel, said, question)) return question
    return undefined
  }

  /** Whether a message is a hint at the question. A hint that is older than the question is about an earlier one with the same title. */
  async #isHint(channel: Channel, said: OutboxRow, key: ApprovalKey): Promise<boolean> {
    const { store, texts } = this.#options
    const approval = await store.get(key)
    if (approval?.state !== 'pending' || approval.prompts.some(({ number }) => number > said.number)) return false
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
