/** The approvals that wait, as much of them as recognising answers takes; everything else stays in the store. */
import type { Address, Approval, ApprovalKey, ApprovalPrompt } from '@sluice/sdk'
import { APPROVE_KEYWORDS, type Keywords, REJECT_KEYWORDS } from './keywords.ts'
import { keyText } from './new-approval.ts'

export interface Pending extends ApprovalKey, Keywords {
  readonly expiresAtMs: number | null
  readonly prompts: readonly ApprovalPrompt[]
  /** Whom it concerns, where that is known: the sender of the message that led to it. */
  readonly person: string | null
}

/** A conversation, or one thread of it. */
type Place = Pick<ApprovalPrompt, 'channel' | 'account'> & { readonly to: Pick<Address, 'to' | 'thread'> }

const placeText = ({ channel, account, to }: Place): string => JSON.stringify([channel, account, to.to, to.thread])
/** One text for one message. Channels and accounts are ours, and have no such character in their names. */
export const messageKey = (channel: string, account: string, providerId: string): string => `${channel}\0${account}\0${providerId}`

/** The default lists are one object for all. */
const shared = (keywords: readonly string[], fallback: readonly string[]): readonly string[] =>
  keywords.length === fallback.length && keywords.every((keyword, index) => keyword === fallback[index]) ? fallback : keywords

export class PendingApprovals {
  readonly #byKey = new Map<string, Pending>()
  /** By a message that asks. */
  readonly #byMessage = new Map<string, Pending>()
  readonly #byPlace = new Map<string, Set<Pending>>()
  /** By the outbox number of a prompt whose provider id is not known. */
  readonly #byUnsent = new Map<number, Pending>()

  get size(): number {
    return this.#byKey.size
  }

  values(): Iterable<Pending> {
    return this.#byKey.values()
  }

  get(key: ApprovalKey): Pending | undefined {
    return this.#byKey.get(keyText(key))
  }

  /** Adds, or replaces what is known. */
  set({ runId, stepId, approveKeywords, rejectKeywords, expiresAtMs, prompts, person }: Approval): Pending {
    this.remove({ runId, stepId })
    const pending: Pending = {
      runId,
      stepId,
      approveKeywords: shared(approveKeywords, APPROVE_KEYWORDS),
      rejectKeywords: shared(rejectKeywords, REJECT_KEYWORDS),
      expiresAtMs,
      prompts,
      person,
    }
    this.#byKey.set(keyText(pending), pending)
    for (const prompt of prompts) {
      const place = placeText(prompt)
      const there = this.#byPlace.get(place)
      if (there) there.add(pending)
      else this.#byPlace.set(place, new Set([pending]))
      if (prompt.providerId === null) this.#byUnsent.set(prompt.number, pending)
      else this.#byMessage.set(messageKey(prompt.channel, prompt.account, prompt.providerId), pending)
    }
    return pending
  }

  remove(key: ApprovalKey): Pending | undefined {
    const pending = this.get(key)
    if (!pending) return undefined
    this.#byKey.delete(keyText(key))
    for (const prompt of pending.prompts) {
      const place = placeText(prompt)
      const there = this.#byPlace.get(place)
      there?.delete(pending)
      if (there?.size === 0) this.#byPlace.delete(place)
      this.#byUnsent.delete(prompt.number)
      if (prompt.providerId !== null) this.#byMessage.delete(messageKey(prompt.channel, prompt.account, prompt.providerId))
    }
    return pending
  }

  ofMessage(channel: string, account: string, providerId: string): Pending | undefined {
    return this.#byMessage.get(messageKey(channel, account, providerId))
  }

  at(place: Place): ReadonlySet<Pending> | undefined {
    return this.#byPlace.get(placeText(place))
  }

  /** The one that waits for this row of the outbox to be sent. */
  awaiting(outbox: number): Pending | undefined {
    return this.#byUnsent.get(outbox)
  }

  /** Those of an account with a prompt whose provider id is not known. */
  unsent(channel: string, account: string): ReadonlySet<Pending> {
    const found = new Set<Pending>()
    for (const [number, pending] of this.#byUnsent) {
      const prompt = pending.prompts.find((candidate) => candidate.number === number)
      if (prompt?.channel === channel && prompt.account === account) found.add(pending)
    }
    return found
  }
}
