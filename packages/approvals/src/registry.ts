/** The approval registry: asks people durably, accepts the first answer, dispatches it to its gate, then confirms it everywhere. */

import { type DeliveryApprovals, type People, type QueuedReply, waitingReplies } from '@sluice/delivery'
import {
  AppError,
  type Approval,
  type ApprovalGate,
  type ApprovalKey,
  type ApprovalRequest,
  type ApprovalStore,
  type Approvals,
  type Channel,
  type Clock,
  type ClusterNotices,
  type GatewayTexts,
  type Inbound,
  type InboxStore,
  type Logger,
  type NewDecision,
  type Outbound,
  type OwnedStore,
  type StartedMessage,
  type StoreChange,
} from '@sluice/sdk'
import { answererOf, answersAsOperator } from './answers.ts'
import { type Access, type ApprovalCaller, accessOf, notYours, operatorsSee, unknownApproval } from './api.ts'
import { type DecisionHandler, Dispatcher } from './dispatch.ts'
import { type ApprovalEvents, emitRequested, emitResolved } from './events.ts'
import { ExpiryTimer, firstExpiry } from './expiry.ts'
import { EventFollower } from './follow-events.ts'
import { handleReply } from './handle-reply.ts'
import { Hints } from './hints.ts'
import { boundedFeedback } from './keywords.ts'
import { mayDecide } from './may-decide.ts'
import { newApproval } from './new-approval.ts'
import { OpenApprovals } from './open-approvals.ts'
import { type OtherProcesses, otherProcesses } from './other-processes.ts'
import { type ApprovalOwnership, OwnApprovals } from './own-approvals.ts'
import { type ActorNames, askedTargets, confirmations, decidedPrompt, named, planPrompts } from './prompts.ts'
import { type Deciders, ReplyMatcher, tokenIn } from './replies.ts'
import { type PromptTargetOptions, promptTargets } from './targets.ts'
import type { UnreachedOptions } from './unreached.ts'
import { Waiters } from './waiters.ts'

export interface ApprovalOptions extends PromptTargetOptions, ActorNames, Pick<UnreachedOptions, 'reach'> {
  readonly store: ApprovalStore
  readonly ownership: ApprovalOwnership
  readonly inbox: Pick<InboxStore, 'done'>
  /** Present in a cluster: announces questions and decisions to other nodes, and receives theirs. */
  readonly notices?: ClusterNotices | undefined
  readonly bus: ApprovalEvents
  readonly clock: Clock
  readonly log: Logger
  /** Returns the senders of a channel who are operators. */
  operators(channel: string): readonly string[]
  readonly people: Pick<People, 'refresh' | 'standing' | 'personOf'>
  /** The texts of `[gateway.texts]`; the English ones unless given. */
  texts?(): GatewayTexts
  /** Called with messages to send, once they are durable. */
  queued(replies: readonly QueuedReply[]): void
  /** The number of approvals that may wait at the same time; `PENDING_MAX` unless given. */
  readonly pendingMax?: number
}

/** The number of approvals that may wait at the same time. */
export const PENDING_MAX = 10_000
const EXPIRE_RETRY_MS = 5000

export class ApprovalRegistry implements Approvals, DeliveryApprovals {
  readonly #options: ApprovalOptions
  readonly #pendingMax: number
  /** Every pending approval, so that a reply to any of them is recognised. */
  readonly #open: OpenApprovals = new OpenApprovals(() => this.#events.follow())
  readonly #own: OwnApprovals
  readonly #others: OtherProcesses
  readonly #events: EventFollower
  readonly #matcher: ReplyMatcher
  readonly #hints: Hints
  readonly #dispatcher: Dispatcher
  readonly #expiry: ExpiryTimer
  readonly #waiters: Waiters
  #leaveShards: (() => void) | undefined
  /** Approvals that are being written to the store. */
  #opening = 0
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(options: ApprovalOptions) {
    const { store, ownership, notices, clock, log, pendingMax = PENDING_MAX } = options
    this.#options = options
    this.#pendingMax = pendingMax
    this.#own = new OwnApprovals(ownership, (approval, owned) => this.#found(approval, owned))
    const isOwn = (key: ApprovalKey): boolean => this.#own.has(key)
    this.#others = otherProcesses({ ownership, notices, store, open: this.#open, isOwn, log, noticed: (key) => this.#noticed(key) })
    const look = async (): Promise<void> => (this.isRunning ? this.look() : undefined)
    this.#events = new EventFollower({ ...options, open: this.#open, look, decide: this.decide.bind(this) })
    this.#matcher = new ReplyMatcher(store, this.#open, decidersOf(options), clock, (...of) => this.#hints.quoted(...of))
    this.#hints = new Hints({ store, matcher: this.#matcher, outbox: options.reach?.outbox, texts: () => this.#texts() })
    this.#waiters = new Waiters((key) => store.get(key))
    this.#expiry = new ExpiryTimer(clock, () => this.#expire())
    this.#dispatcher = new Dispatcher({
      clock,
      log,
      read: async (key) => (this.#own.has(key) ? store.get(key) : undefined),
      acknowledged: (approval) => this.#acknowledged(approval),
    })
    // Programs and tool calls read their decision themselves: they call `get` or `decision`.
    for (const gate of ['event', 'tool'] as const) this.#dispatcher.handle(gate, async () => {})
  }

  /** True between `start` and `stop`. */
  get isRunning(): boolean {
    return this.#state === 'running'
  }

  /** Resumes the approvals of the shards that this process owns. Before this, nothing expires and no gate is called. */
  async start(): Promise<void> {
    this.#state = 'running'
    this.#leaveShards = await this.#own.follow((approvals) => this.#options.log.info('resuming open approvals', { approvals }))
    await this.#others.refresh()
  }

  /** After this call no approval expires, no gate is called, and `decision` does not settle. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#expiry.stop()
    this.#others.leave()
    this.#leaveShards?.()
    this.#events.stop()
    await this.#dispatcher.stop()
  }

  async open(question: ApprovalRequest): ReturnType<Approvals['open']> {
    const { bus, clock, queued, store } = this.#options
    const isFull = this.#open.size + this.#opening >= this.#pendingMax
    const known = isFull || this.#open.get(question) ? await store.get(question) : undefined
    if (isFull && !known) throw new AppError('unavailable', `${this.#pendingMax} approvals wait for an answer: there cannot be more`)
    // After a start every waiting turn opens its question again. An open approval is not written again and gets no second prompt.
    const owned = this.#own.ownerOf(question)
    if (known?.state === 'pending' && known.gate === question.gate) {
      this.#keep(known, owned)
      return { opened: false, approval: known, asked: [] }
    }
    const approval = newApproval(question, clock.nowMs())
    const targets = promptTargets(question, this.#options)
    const prompts = planPrompts(targets, approval, this.#texts())
    this.#opening += 1
    const kept = await store.open(approval, prompts.flat()).finally(() => {
      this.#opening -= 1
    })
    if (kept.approval.gate !== question.gate)
      throw new AppError('conflict', 'Another gate has an approval of this run_id and step_id', { fields: { state: kept.approval.state } })
    if (kept.approval.state === 'pending') this.#keep(kept.approval, owned)
    if (!kept.opened) return { ...kept, asked: [] }
    const numbers = kept.approval.prompts.map(({ number }) => number)
    queued(waitingReplies(prompts.flat(), numbers))
    this.#others.tell(kept.approval)
    emitRequested(bus, kept.approval, operatorsSee(kept.approval, this.#options.targets()))
    return { ...kept, asked: askedTargets(targets, prompts, numbers) }
  }

  /** See `Approvals.decide`. With `inbox`, that message is done in the same commit if its decision wins. */
  async decide(key: ApprovalKey, given: NewDecision, inbox?: number): ReturnType<Approvals['decide']> {
    const { store, clock } = this.#options
    const { state, by, feedback } = given
    if ('who' in given) {
      const known = await store.get(key)
      if (known?.state === 'pending' && !mayDecide(known, given.who)) throw notYours(known)
    }
    const standing = 'who' in given ? given.who.standing : null
    const decision = { state, by, standing, feedback: boundedFeedback(feedback ?? ''), atMs: clock.nowMs() }
    const decided = await store.decide(key, decision, inbox)
    if (!decided) throw unknownApproval(key)
    if (decided.won) this.#others.tell(decided.approval)
    if (this.#open.get(key)) this.#decided(decided.approval)
    else if (decided.won) this.#dispatch(decided.approval)
    return decided
  }

  get(key: ApprovalKey): Promise<Approval | undefined> {
    return this.#options.store.get(key)
  }

  onDecision(gate: ApprovalGate, take: DecisionHandler): () => void {
    return this.#dispatcher.handle(gate, take)
  }

  /** Whether a caller of the API may see and decide the approval. */
  access(approval: Pick<Approval, 'gate' | 'owner' | 'decider'>, caller: ApprovalCaller): Access {
    return accessOf(approval, caller, this.#options.targets())
  }

  /** Whether the question would get a prompt: it comes from a conversation, or a target is named or configured. */
  reaches(question: Pick<ApprovalRequest, 'origin' | 'channels'>): boolean {
    return promptTargets(question, this.#options).conversations.length > 0
  }

  /** Resolves to the decided approval; to undefined if `signal` aborts first, or no approval has this key. */
  decision(key: ApprovalKey, signal: AbortSignal): Promise<Approval | undefined> {
    return this.#waiters.decision(key, signal)
  }

  matchReply(channel: Channel, inbound: Inbound): ReturnType<ReplyMatcher['match']> {
    // A prompt that another process sent is in the store before a person can answer it.
    const refreshed = this.#others.refresh()
    return refreshed ? refreshed.then(() => this.#matcher.match(channel, inbound)) : this.#matcher.match(channel, inbound)
  }

  answersAsOperator(channel: Channel, message: Inbound, key?: ApprovalKey): Promise<boolean> {
    return answersAsOperator({ ...this.#options, matcher: this.#matcher }, { channel, message, key })
  }

  hint(channel: Channel, inbound: Inbound): Promise<string | undefined> | undefined {
    return this.#hints.hint(channel, inbound)
  }

  isAsking(channel: Channel, inbound: Inbound): boolean {
    return this.#matcher.isAsking(channel, inbound)
  }

  async handleReply(message: StartedMessage): Promise<void> {
    return handleReply({ ...this.#options, matcher: this.#matcher, texts: this.#texts(), decide: this.decide.bind(this) }, message)
  }

  async current(message: Outbound, limits: Channel['limits']): Promise<Outbound> {
    const [button] = message.buttons ?? []
    const token = button && tokenIn(button.value)
    const approval = token === undefined ? undefined : await this.#options.store.byToken(token)
    if (approval?.state === 'pending') this.#matcher.sending(approval)
    if (!approval || approval.state === 'pending') return message
    return decidedPrompt(message, await named(approval, this.#options), limits, this.#texts())
  }

  /** Finds decisions that another process, or the end of a turn, wrote to the store, and approvals that another process opened. */
  async look(change: StoreChange = { shards: null }): Promise<void> {
    await this.#own.look(change)
    const refreshed = this.#others.refresh()
    if (!refreshed) return
    await refreshed
    for (const key of this.#waiters.keys()) {
      const approval = await this.#options.store.get(key)
      if (approval && approval.state !== 'pending') this.#decided(approval)
    }
  }

  /** Reads an approval that another node has opened or decided. */
  async #noticed(key: ApprovalKey): Promise<void> {
    const approval = this.isRunning ? await this.#options.store.get(key) : undefined
    if (!approval) return
    if (approval.state !== 'pending') {
      if (this.#open.get(key) || this.#waiters.has(key) || this.#own.has(key)) this.#decided(approval)
    } else if (!this.#open.get(key)) this.#keep(approval, undefined)
  }

  #texts(): GatewayTexts {
    return this.#options.texts?.() ?? {}
  }

  #found(approval: Approval, owned: OwnedStore): void {
    if (approval.state === 'pending') this.#keep(approval, owned)
    else {
      this.#own.set(approval, owned)
      this.#decided(approval)
    }
  }

  #keep(approval: Approval, owned: OwnedStore | undefined): void {
    this.#open.set(approval)
    if (!owned) return
    this.#own.set(approval, owned)
    if (this.isRunning && approval.expiresAtMs !== null) this.#expiry.arm(approval.expiresAtMs)
  }

  /** Removes a decided approval from the open ones, answers its waiters and dispatches it. */
  #decided(approval: Approval): void {
    this.#open.delete(approval)
    this.#matcher.remember(approval)
    this.#waiters.answer(approval)
    this.#dispatch(approval)
  }

  /** Gives a decision to its gate here. The owner of another gate finds the decision in the store. */
  #dispatch(approval: Approval): void {
    const owned = this.#own.get(approval) ?? this.#own.ownerOf(approval)
    if (!owned || !this.isRunning) return
    this.#own.set(approval, owned)
    this.#dispatcher.enter(approval)
  }

  /** Records that the gate has taken the decision, with its confirmations in the same commit. */
  async #acknowledged(dispatched: Approval): Promise<void> {
    const { bus, channels, clock, queued, store } = this.#options
    const owned = this.#own.get(dispatched)
    if (!owned) return
    const approval = (await store.get(dispatched)) ?? dispatched
    const nowMs = clock.nowMs()
    const replies = confirmations(await named(approval, this.#options), { channels: channels(), texts: this.#texts(), nowMs })
    queued(waitingReplies(replies, await owned.approvals.acknowledge(approval, nowMs, replies)))
    this.#own.delete(approval)
    // The decision may have been made before `open` had put the approval among the open ones.
    if (this.#open.get(approval)) this.#decided(approval)
    emitResolved(bus, approval)
  }

  /** Expires approvals whose time has come. Resolves to the time of the next one. */
  async #expire(): Promise<number | undefined> {
    const { clock, log } = this.#options
    const nowMs = clock.nowMs()
    const own = () => [...this.#open.values()].filter((open) => this.#own.has(open))
    const expired = own().filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)
    const results = await Promise.allSettled(expired.map((key) => this.decide(key, { state: 'expired', by: 'timeout' })))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) log.error('approvals not expired', { error: failed.reason })
    const next = firstExpiry(own())
    return next !== undefined && failed ? Math.max(next, nowMs + EXPIRE_RETRY_MS) : next
  }
}

const decidersOf = (options: ApprovalOptions): Deciders => ({
  refresh: () => options.people.refresh(),
  mayDecide: (open, { name: channel }, message) => mayDecide(open, answererOf(open, { channel, message }, options)),
})
