/** The approval registry: asks people durably, accepts the first answer, dispatches it to its gate, then confirms it everywhere. */

import { type DeliveryApprovals, waitingReplies } from '@sluice/delivery'
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
  type EventEnvelope,
  type Inbound,
  type InboxStore,
  type Logger,
  type Outbound,
  type StartedMessage,
  type Waiting,
} from '@sluice/sdk'
import { type Access, type ApprovalCaller, accessOf, operatorsApprove, unknownApproval } from './api.ts'
import { type DecisionHandler, Dispatcher } from './dispatch.ts'
import { type ApprovalEvents, emitRequested, emitResolved } from './events.ts'
import { ExpiryTimer } from './expiry.ts'
import { handleReply } from './handle-reply.ts'
import { boundedFeedback } from './keywords.ts'
import { keyText, newApproval } from './new-approval.ts'
import { OpenApprovals, unfinishedApprovals } from './open-approvals.ts'
import { askedTargets, confirmations, decidedPrompt, planPrompts } from './prompts.ts'
import { ReplyMatcher, tokenIn } from './replies.ts'
import { type PromptTargetOptions, promptTargets } from './targets.ts'

export interface ApprovalOptions extends PromptTargetOptions {
  readonly store: ApprovalStore
  readonly inbox: Pick<InboxStore, 'done'>
  readonly bus: ApprovalEvents
  readonly clock: Clock
  readonly log: Logger
  /** Called with messages to send, once they are durable. */
  queued(replies: readonly Waiting[]): void
  /** The number of approvals that may wait at the same time; `PENDING_MAX` unless given. */
  readonly pendingMax?: number
}

type Decision = Parameters<Approvals['decide']>[1]

/** The number of approvals that may wait at the same time. */
export const PENDING_MAX = 10_000
const EXPIRE_RETRY_MS = 5000

export class ApprovalRegistry implements Approvals, DeliveryApprovals {
  readonly #options: ApprovalOptions
  readonly #pendingMax: number
  readonly #open = new OpenApprovals()
  readonly #matcher: ReplyMatcher
  readonly #dispatcher: Dispatcher
  readonly #expiry: ExpiryTimer
  /** Callers of `decision`, by key; bounded by the approvals that wait. */
  readonly #waiters = new Map<string, Set<(approval: Approval) => void>>()
  readonly #unsubscribe: () => void
  /** Approvals that are being written to the store. */
  #opening = 0
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(options: ApprovalOptions) {
    const { store, bus, clock, log, pendingMax = PENDING_MAX } = options
    this.#options = options
    this.#pendingMax = pendingMax
    this.#matcher = new ReplyMatcher(store, this.#open)
    this.#expiry = new ExpiryTimer(clock, () => this.#expire())
    this.#dispatcher = new Dispatcher({
      clock,
      log,
      read: (key) => store.get(key),
      acknowledged: (approval) => this.#acknowledged(approval),
    })
    // Programs and tool calls read their decision themselves: they call `get` or `decision`.
    for (const gate of ['event', 'tool'] as const) this.#dispatcher.handle(gate, async () => {})
    this.#unsubscribe = bus.subscribe(({ envelope }) => this.#onEvent(envelope))
  }

  /** True between `start` and `stop`. */
  get isRunning(): boolean {
    return this.#state === 'running'
  }

  /** Resumes the approvals that the last run left open or unacknowledged. Before this, nothing expires and no gate is called. */
  async start(): Promise<void> {
    const { log, store } = this.#options
    this.#state = 'running'
    let found = 0
    for await (const approval of unfinishedApprovals(store)) {
      found++
      if (approval.state === 'pending') this.#keep(approval)
      else this.#dispatcher.enter(approval)
    }
    if (found > 0) log.info('resuming open approvals', { approvals: found })
  }

  /** After this call no approval expires, no gate is called, and `decision` does not settle. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#expiry.stop()
    this.#unsubscribe()
    await this.#dispatcher.stop()
  }

  async open(question: ApprovalRequest): ReturnType<Approvals['open']> {
    const { bus, clock, queued, store } = this.#options
    const isFull = this.#open.size + this.#opening >= this.#pendingMax
    const known = isFull || this.#open.get(question) ? await store.get(question) : undefined
    if (isFull && !known) throw new AppError('unavailable', `${this.#pendingMax} approvals wait for an answer: there cannot be more`)
    // After a start every waiting turn opens its question again. An open approval is not written again and gets no second prompt.
    if (known?.state === 'pending' && known.gate === question.gate) {
      this.#keep(known)
      return { opened: false, approval: known, asked: [] }
    }
    const approval = newApproval(question, clock.nowMs())
    const targets = promptTargets(question, this.#options)
    const prompts = planPrompts(targets, approval)
    this.#opening += 1
    const kept = await store.open(approval, prompts.flat()).finally(() => {
      this.#opening -= 1
    })
    if (kept.approval.gate !== question.gate)
      throw new AppError('conflict', 'Another gate has an approval of this run_id and step_id', { fields: { state: kept.approval.state } })
    if (kept.approval.state === 'pending') this.#keep(kept.approval)
    if (!kept.opened) return { ...kept, asked: [] }
    const numbers = kept.approval.prompts.map(({ number }) => number)
    queued(waitingReplies(prompts.flat(), numbers))
    emitRequested(bus, kept.approval, operatorsApprove(this.#options.targets()))
    return { ...kept, asked: askedTargets(targets, prompts, numbers) }
  }

  /** See `Approvals.decide`. With `inbox`, that message is done in the same commit if its decision wins. */
  async decide(key: ApprovalKey, { state, by, feedback }: Decision, inbox?: number): ReturnType<Approvals['decide']> {
    const { store, clock } = this.#options
    const decision = { state, by, feedback: boundedFeedback(feedback ?? ''), atMs: clock.nowMs() }
    const decided = await store.decide(key, decision, inbox)
    if (!decided) throw unknownApproval(key)
    if (this.#open.get(key)) this.#decided(decided.approval)
    else if (decided.won && this.isRunning) this.#dispatcher.enter(decided.approval)
    return decided
  }

  get(key: ApprovalKey): Promise<Approval | undefined> {
    return this.#options.store.get(key)
  }

  onDecision(gate: ApprovalGate, take: DecisionHandler): () => void {
    return this.#dispatcher.handle(gate, take)
  }

  /** Whether a caller of the API may see and decide the approval. */
  access(approval: Pick<Approval, 'gate' | 'owner'>, caller: ApprovalCaller): Access {
    return accessOf(approval, caller, this.#options.targets())
  }

  /** Whether the question would get a prompt: it comes from a conversation, or a target is named or configured. */
  reaches(question: Pick<ApprovalRequest, 'origin' | 'channels'>): boolean {
    return promptTargets(question, this.#options).conversations.length > 0
  }

  /** Resolves to the decided approval; to undefined if `signal` aborts first, or there is no approval of this key. */
  async decision(key: ApprovalKey, signal: AbortSignal): Promise<Approval | undefined> {
    const { promise, resolve } = Promise.withResolvers<Approval | undefined>()
    const text = keyText(key)
    const waiters = this.#waiters.get(text) ?? new Set()
    this.#waiters.set(text, waiters.add(resolve))
    const leave = (): void => resolve(undefined)
    signal.addEventListener('abort', leave, { once: true })
    try {
      const approval = await this.get(key)
      if (approval?.state !== 'pending') return approval
      return signal.aborted ? undefined : await promise
    } finally {
      signal.removeEventListener('abort', leave)
      waiters.delete(resolve)
      if (waiters.size === 0 && this.#waiters.get(text) === waiters) this.#waiters.delete(text)
    }
  }

  matchReply(channel: Channel, inbound: Inbound): ReturnType<ReplyMatcher['match']> {
    return this.#matcher.match(channel, inbound)
  }

  handleReply(message: StartedMessage): Promise<void> {
    const { store, inbox, clock, channels, queued } = this.#options
    const decide: ApprovalRegistry['decide'] = (key, decision, number) => this.decide(key, decision, number)
    return handleReply({ store, inbox, matcher: this.#matcher, clock, channels, queued, decide }, message)
  }

  async current(message: Outbound, limits: Channel['limits']): Promise<Outbound> {
    const [button] = message.buttons ?? []
    const token = button && tokenIn(button.value)
    const approval = token === undefined ? undefined : await this.#options.store.byToken(token)
    return approval && approval.state !== 'pending' ? decidedPrompt(message, approval, limits) : message
  }

  /** Finds decisions that another process, or the end of a turn, wrote to the store. */
  async look(): Promise<void> {
    for await (const approval of unfinishedApprovals(this.#options.store, { decided: true })) this.#decided(approval)
  }

  #keep(approval: Approval): void {
    this.#open.set(approval)
    if (this.isRunning && approval.expiresAtMs !== null) this.#expiry.arm(approval.expiresAtMs)
  }

  /** Removes a decided approval from the open ones, answers its waiters and dispatches it. */
  #decided(approval: Approval): void {
    this.#open.delete(approval)
    this.#matcher.remember(approval)
    const key = keyText(approval)
    const waiters = this.#waiters.get(key)
    this.#waiters.delete(key)
    for (const resolve of waiters ?? []) resolve(approval)
    if (this.isRunning) this.#dispatcher.enter(approval)
  }

  /** Records that the gate has taken the decision, with its confirmations in the same commit. */
  async #acknowledged(dispatched: Approval): Promise<void> {
    const { bus, channels, clock, queued, store } = this.#options
    const approval = (await store.get(dispatched)) ?? dispatched
    const nowMs = clock.nowMs()
    const replies = confirmations(approval, channels(), nowMs)
    queued(waitingReplies(replies, await store.acknowledge(approval, nowMs, replies)))
    // The decision may have been made before `open` had put the approval among the open ones.
    if (this.#open.get(approval)) this.#decided(approval)
    emitResolved(bus, approval)
  }

  /** Expires approvals whose time has come. Resolves to the time of the next one. */
  async #expire(): Promise<number | undefined> {
    const { clock, log } = this.#options
    const nowMs = clock.nowMs()
    const expired = [...this.#open.values()].filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)
    const results = await Promise.allSettled(expired.map((key) => this.decide(key, { state: 'expired', by: 'timeout' })))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) log.error('approvals not expired', { error: failed.reason })
    const left = [...this.#open.values()].flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]))
    const next = left.reduce((least, atMs) => Math.min(least, atMs), Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return undefined
    return failed ? Math.max(next, nowMs + EXPIRE_RETRY_MS) : next
  }

  #onEvent(event: EventEnvelope): void {
    const { log } = this.#options
    if (this.isRunning && this.#mayWithdraw(event))
      this.look().catch((error: unknown) => log.error('approvals of ended turns not read', { error }))
    if (event.type !== 'delivery' || event.direction !== 'outbound' || event.state !== 'sent') return
    this.#learnProviderId(event.number).catch((error: unknown) =>
      log.warn('platform id of a prompt not read', { outbox: event.number, error }),
    )
  }

  /** Whether the event may report the end of a turn with open approvals, which the store withdraws in the same commit. */
  #mayWithdraw(event: EventEnvelope): boolean {
    if (event.type === 'delivery') return event.direction === 'inbound' && event.state === 'dead' && this.#open.size > 0
    if (event.type !== 'turn_completed' && event.type !== 'turn_failed') return false
    return [...this.#open.values()].some(({ runId }) => runId === event.turn_id)
  }

  /** After a prompt was sent, the store has its platform id, which replies refer to. */
  async #learnProviderId(outbox: number): Promise<void> {
    const open = this.#open.ofUnsentPrompt(outbox)
    const approval = open && (await this.get(open))
    if (approval?.state === 'pending' && this.#open.get(approval)) this.#open.set(approval)
  }
}
