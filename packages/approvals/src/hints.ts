/** Tells people who write something else which questions wait for them, and how to decide them. */
import { BoundedMap } from '@sluice/kit'
import { type ApprovalStore, type Channel, type GatewayTexts, gatewayText, type Inbound } from '@sluice/sdk'
import { keyText } from './new-approval.ts'
import { isBareWord, type ReplyMatcher } from './replies.ts'

/** Conversations with their questions that are remembered as told. */
const TOLD_MAX = 10_000

export interface HintOptions {
  readonly store: Pick<ApprovalStore, 'get'>
  readonly matcher: Pick<ReplyMatcher, 'isAsking' | 'openQuestions'>
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
    const [approve = ''] = open.approveKeywords
    const [reject = ''] = open.rejectKeywords
    // The message waits behind a question about the sender's own turn.
    const text = inbound.sender === open.person ? 'open_question' : 'open_question_of_others'
    return gatewayText(text, texts(), { question: approval.title, approve, reject })
  }
}
