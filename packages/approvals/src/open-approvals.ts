/** The approvals that wait for a reply: an index in memory for matching replies, and reading them from the store by page. */
import { setImmediate } from 'node:timers/promises'
import type { Address, Approval, ApprovalKey, ApprovalPrompt, ApprovalStore, OwnedApprovalStore } from '@sluice/sdk'
import { APPROVE_KEYWORDS, type Keywords, REJECT_KEYWORDS } from './keywords.ts'
import type { Decided } from './may-decide.ts'
import { keyText } from './new-approval.ts'

/** The part of an approval that is needed to match a reply. Everything else stays in the store. */
export interface OpenApproval extends ApprovalKey, Keywords, Decided {
  readonly createdAtMs: number
  readonly expiresAtMs: number | null
  readonly prompts: readonly ApprovalPrompt[]
  /** The sender of the message that led to the question; null where that is not known. */
  readonly person: string | null
}

/** A conversation, or one thread of it. */
type Place = Pick<ApprovalPrompt, 'channel' | 'account'> & { readonly to: Pick<Address, 'to' | 'thread'> }

const PAGE_ROWS = 100

/** The account of a prompt whose target names no account: an answer to any account of the channel counts. */
export const ANY_ACCOUNT = ''

export const isSameAccount = (one: string, other: string): boolean => one === other || one === ANY_ACCOUNT || other === ANY_ACCOUNT

const placeText = ({ channel, account, to }: Place): string => JSON.stringify([channel, account, to.to, to.thread])

/** The key of one message of a platform. Names of channels and accounts never contain the separator. */
export const messageKey = (channel: string, account: string, providerId: string): string => `${channel}\0${account}\0${providerId}`

export function openApprovalOf(approval: Approval): OpenApproval {
  const { runId, stepId, approveKeywords, rejectKeywords, createdAtMs, expiresAtMs, prompts, person, decider, standing, sources } = approval
  return {
    runId,
    stepId,
    approveKeywords: shared(approveKeywords, APPROVE_KEYWORDS),
    rejectKeywords: shared(rejectKeywords, REJECT_KEYWORDS),
    createdAtMs,
    expiresAtMs,
    prompts,
    person,
    decider,
    standing,
    sources,
  }
}

/** Returns the default list itself in place of an equal one, which saves memory. */
const shared = (keywords: readonly string[], defaults: readonly string[]): readonly string[] =>
  keywords.length === defaults.length && keywords.every((keyword, index) => keyword === defaults[index]) ? defaults : keywords

export class OpenApprovals {
  readonly #onChange: () => void
  readonly #byKey = new Map<string, OpenApproval>()
  /** The approvals by each message that is one of their prompts. */
  readonly #byMessage = new Map<string, OpenApproval>()
  readonly #byPlace = new Map<string, Set<OpenApproval>>()
  /** The approvals by the outbox number of each prompt that has no platform id yet. */
  readonly #byUnsentPrompt = new Map<number, OpenApproval>()

  /** Calls `onChange` after each approval that is added or removed. */
  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange
  }

  get size(): number {
    return this.#byKey.size
  }

  values(): Iterable<OpenApproval> {
    return this.#byKey.values()
  }

  get(key: ApprovalKey): OpenApproval | undefined {
    return this.#byKey.get(keyText(key))
  }

  /** Adds the approval, or replaces the entry of its key. */
  set(approval: Approval): OpenApproval {
    this.#remove(approval)
    const open = openApprovalOf(approval)
    this.#byKey.set(keyText(open), open)
    for (const prompt of open.prompts) {
      const place = placeText(prompt)
      const there = this.#byPlace.get(place)
      if (there) there.add(open)
      else this.#byPlace.set(place, new Set([open]))
      if (prompt.providerId === null) this.#byUnsentPrompt.set(prompt.number, open)
      else this.#byMessage.set(messageKey(prompt.channel, prompt.account, prompt.providerId), open)
    }
    this.#onChange()
    return open
  }

  delete(key: ApprovalKey): void {
    this.#remove(key)
    this.#onChange()
  }

  #remove(key: ApprovalKey): void {
    const open = this.get(key)
    if (!open) return
    this.#byKey.delete(keyText(key))
    for (const prompt of open.prompts) {
      const place = placeText(prompt)
      const there = this.#byPlace.get(place)
      there?.delete(open)
      if (there?.size === 0) this.#byPlace.delete(place)
      this.#byUnsentPrompt.delete(prompt.number)
      if (prompt.providerId !== null) this.#byMessage.delete(messageKey(prompt.channel, prompt.account, prompt.providerId))
    }
  }

  /** Reads an open approval again, such as for the platform's id of a prompt that was sent. */
  async readAgain(store: Pick<ApprovalStore, 'get'>, key: ApprovalKey): Promise<void> {
    const approval = await store.get(key)
    if (approval?.state === 'pending' && this.get(approval)) this.set(approval)
  }

  /**
   * Reads the pending approvals from the store and removes the decided ones. Leaves approvals as they are for which
   * `isCurrent` returns true.
   */
  async refresh(store: Pick<ApprovalStore, 'list'>, isCurrent: (key: ApprovalKey) => boolean): Promise<void> {
    const gone = new Set([...this.#byKey.values()].filter((open) => !isCurrent(open)))
    for (let before: Approval | undefined; ; ) {
      const page: Approval[] = await store.list({ limit: PAGE_ROWS, state: 'pending', ...(before && { before }) })
      for (const approval of page) {
        const known = this.get(approval)
        if (known) gone.delete(known)
        if (!isCurrent(approval)) this.set(approval)
      }
      before = page.at(-1)
      if (page.length < PAGE_ROWS) break
    }
    for (const open of gone) if (this.get(open) === open) this.delete(open)
  }

  /** Returns the approval whose prompt is this message of a platform. */
  ofMessage(channel: string, account: string, providerId: string): OpenApproval | undefined {
    const of = (name: string) => this.#byMessage.get(messageKey(channel, name, providerId))
    return of(account) ?? of(ANY_ACCOUNT)
  }

  /** Returns the approvals with a prompt in this conversation or thread. */
  at(place: Place): ReadonlySet<OpenApproval> {
    const of = (account: string) => this.#byPlace.get(placeText({ ...place, account })) ?? []
    return new Set([...of(place.account), ...of(ANY_ACCOUNT)])
  }

  /** Returns the approval whose prompt has this outbox number and no platform id yet. */
  ofUnsentPrompt(outbox: number): OpenApproval | undefined {
    return this.#byUnsentPrompt.get(outbox)
  }

  /** Returns the approvals with a prompt of this account that has no platform id yet. */
  unsent(channel: string, account: string): ReadonlySet<OpenApproval> {
    const found = new Set<OpenApproval>()
    for (const [number, open] of this.#byUnsentPrompt) {
      const prompt = open.prompts.find((candidate) => candidate.number === number)
      if (prompt?.channel === channel && isSameAccount(prompt.account, account)) found.add(open)
    }
    return found
  }
}

/**
 * Every stored approval that is pending, or decided and not acknowledged, the oldest first; with `decided` only the latter.
 * Reads page by page, and lets other work run between two pages.
 */
export async function* unfinishedApprovals(
  store: Pick<OwnedApprovalStore, 'unfinished'>,
  { decided }: { readonly decided?: true } = {},
): AsyncGenerator<Approval> {
  for (let after: ApprovalKey | null = null; ; ) {
    const page: readonly Approval[] = await store.unfinished({ after, limit: PAGE_ROWS, ...(decided && { decided }) })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE_ROWS) return
    after = last
    await setImmediate()
  }
}
