/** Recognises answers to approvals in what people write and press (§6, decisions "Approvals"). Strangers never get here. */

import { BoundedMap } from '@sluice/kit'
import type { Approval, ApprovalKey, ApprovalStore, Channel, Inbound } from '@sluice/sdk'
import { type Verdict, verdictOf } from './keywords.ts'
import { messageKey, type Pending, type PendingApprovals } from './pending.ts'
import { isAnswerTo, isBeside, isHere, namedBy } from './scope.ts'

/** How many decided approvals are remembered, so that those who are late are told. */
const DECIDED_MAX = 1000
/** Prompts on their way out that are looked up for one message. */
const UNSENT_MAX = 16

const APPROVE = 'a.'
const REJECT = 'r.'
const PRESSED = /^[ar]\.[A-Za-z0-9_-]{1,40}$/

export const approveValue = (token: string): string => APPROVE + token
export const rejectValue = (token: string): string => REJECT + token

/** The token in the value of a button, if it may be one of ours. */
export const tokenIn = (value: string): string | undefined => (PRESSED.test(value) ? value.slice(APPROVE.length) : undefined)

export interface Answers {
  /**
   * The approval a text answers: one that waits, or one decided lately. Undefined for anything else; presses are not looked
   * at here, since they are never anything but answers. Known at once where nobody waits: every message is looked at.
   */
  keyOf(channel: Channel, inbound: Inbound): ApprovalKey | undefined | Promise<ApprovalKey | undefined>
  /** The approval whose button was pressed, and what the button says; undefined if the button is none of ours there. */
  pressed(channel: string, inbound: Inbound): Promise<{ readonly approval: Approval; readonly verdict: Verdict } | undefined>
  /** It waits no more. */
  decided(approval: Approval): void
}

export interface AnswersDeps {
  readonly store: Pick<ApprovalStore, 'get' | 'byToken'>
  readonly pending: PendingApprovals
}

export function createAnswers({ store, pending }: AnswersDeps): Answers {
  /** By each message that asked. */
  const decided = new BoundedMap<string, Pending>(DECIDED_MAX)

  /** Nothing but a keyword, or the rejection that the prompt itself asks for; whatever else begins with one may be talk. */
  const isClear = ({ text }: Inbound, candidate: Pending): boolean => {
    const verdict = verdictOf(text, candidate)
    if (!verdict || verdict.feedback === null) return verdict !== undefined
    return !verdict.approved && verdictOf(text, { approveKeywords: [], rejectKeywords: candidate.rejectKeywords.slice(0, 1) }) !== undefined
  }
  const answers = (candidate: Pending, channel: Channel, inbound: Inbound): boolean =>
    candidate.prompts.some((prompt) => isAnswerTo(inbound, channel.name, prompt)) && verdictOf(inbound.text, candidate) !== undefined

  /** Asks the store for those whose prompts are on their way: somebody may answer before we know that one has arrived. */
  const justSent = async (channel: Channel, inbound: Inbound): Promise<Pending | undefined> => {
    const candidates = [...pending.unsent(channel.name, inbound.account)].filter((candidate) => verdictOf(inbound.text, candidate))
    for (const candidate of candidates.slice(0, UNSENT_MAX)) {
      const approval = await store.get(candidate)
      if (approval?.state !== 'pending') continue
      const fresh = pending.set(approval)
      if (answers(fresh, channel, inbound)) return fresh
    }
    return undefined
  }

  const beside = (channel: Channel, inbound: Inbound): Pending | undefined => {
    const there = pending.at({ channel: channel.name, account: inbound.account, to: inbound.to })
    if (there?.size !== 1) return undefined
    const [only] = there
    return only && isBeside(inbound, channel, only.person) && isClear(inbound, only) ? only : undefined
  }

  const find = async (channel: Channel, inbound: Inbound): Promise<Pending | undefined> => {
    const { name } = channel
    for (const id of namedBy(inbound)) {
      const named = pending.ofMessage(name, inbound.account, id) ?? decided.get(messageKey(name, inbound.account, id))
      if (named && answers(named, channel, inbound)) return named
    }
    return beside(channel, inbound) ?? (await justSent(channel, inbound))
  }

  return {
    keyOf: (channel, inbound) => (pending.size === 0 && decided.size === 0 ? undefined : find(channel, inbound)),
    async pressed(channel, { account, to, pressed }) {
      const token = pressed && tokenIn(pressed.value)
      if (!pressed || token === undefined) return undefined
      const approval = await store.byToken(token)
      const isItsButton = approval?.prompts.some(
        (prompt) =>
          prompt.channel === channel &&
          prompt.account === account &&
          (isHere(to.to, prompt) || prompt.providerId === to.to) &&
          (prompt.providerId === null || prompt.providerId === pressed.message),
      )
      if (!approval || !isItsButton) return undefined
      return { approval, verdict: { approved: pressed.value.startsWith(APPROVE), feedback: null } }
    },
    decided(approval) {
      const { runId, stepId, approveKeywords, rejectKeywords, expiresAtMs, prompts, person } = approval
      const kept = { runId, stepId, approveKeywords, rejectKeywords, expiresAtMs, prompts, person }
      for (const { channel, account, providerId } of prompts)
        if (providerId !== null) decided.set(messageKey(channel, account, providerId), kept)
    },
  }
}
