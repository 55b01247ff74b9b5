/** The approval registry: asks people durably, accepts the first answer, dispatches it to its gate, then confirms it everywhere. */

import { type DeliveryApprovals, type QueuedReply, standingOfSender, waitingReplies } from '@sluice/delivery'
import { BoundedMap } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import {
  type Answerer,
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
  type EventEnvelope,
  type GatewayTexts,
  gatewayText,
  type Inbound,
  type InboxStore,
  isAtLeast,
  type Logger,
  type NewDecision,
  type Outbound,
  type OwnedStore,
  type StartedMessage,
  type StoreChange,
  shardOf,
  shardOfTurn,
  sourceOfMessage,
} from '@sluice/sdk'
import { type Access, type ApprovalCaller, accessOf, notYours, operatorsSee, unknownApproval } from './api.ts'
import { type DecisionHandler, Dispatcher } from './dispatch.ts'
import { type ApprovalEvents, emitRequested, emitResolved } from './events.ts'
import { ExpiryTimer } from './expiry.ts'
import { handleReply } from './handle-reply.ts'
import { boundedFeedback } from './keywords.ts'
import { mayDecide } from './may-decide.ts'
import { keyText, newApproval } from './new-approval.ts'
import { type OpenApproval, OpenApprovals, unfinishedApprovals } from './open-approvals.ts'
import { askedTargets, confirmations, decidedPrompt, planPrompts } from './prompts.ts'
import { answeredPrompt, ReplyMatcher, tokenIn } from './replies.ts'
import { isOperatorsConversation, type PromptTargetOptions, promptTargets } from './targets.ts'

export interface ApprovalOptions extends PromptTargetOptions {
  readonly store: ApprovalStore
  readonly ownership: Pick<Ownership, 'ownsAll' | 'of' | 'held' | 'onShards'>
  readonly inbox: Pick<InboxStore, 'done'>
  /** Present in a cluster: tells other nodes of questions and decisions, and hears of theirs. */
  readonly notices?: ClusterNotices | undefined
  readonly bus: ApprovalEvents
  readonly clock: Clock
  readonly log: Logger
  /** Returns the senders of a channel who are operators. */
  operators(channel: string): readonly string[]
  /** The texts of `[gateway.texts]`; the English ones unless given. */
  texts?(): GatewayTexts
  /** Called with messages to send, once they are durable. */
  queued(replies: readonly QueuedReply[]): void
  /** The number of approvals that may wait at the same time; `PENDING_MAX` unless given. */
  readonly pendingMax?: number
}

/** The callers that wait for the decision of one approval. */
interface Waiters {
  readonly key: ApprovalKey
  readonly resolve: Set<(approval: Approval) => void>
}

/** The number of approvals that may wait at the same time. */
export const PENDING_MAX = 10_000
const EXPIRE_RETRY_MS = 5000

export class ApprovalRegistry implements Approvals, DeliveryApprovals {
  readonly #options: ApprovalOptions
  readonly #pendingMax: number
  /** Every pending approval, so that a reply to any of them is recognised. */
  readonly #open = new OpenApprovals(() => this.#followEvents())
  /** The approvals that this process expires and dispatches, with the store under their lease. */
  readonly #owned = new Map<string, OwnedStore>()
  readonly #matcher: ReplyMatcher
  readonly #dispatcher: Dispatcher
  readonly #expiry: ExpiryTimer
  /** Callers of `decision`, by key; bounded by the approvals that wait. */
  readonly #waiters = new Map<string, Waiters>()
  #unsubscribe: readonly (() => void)[]
  /** Leaves the event bus; undefined while no approval is open. */
  #leaveBus: (() => void) | undefined
  /** The approvals whose people were told that a question waits. */
  readonly #hinted = new BoundedMap<string, true>(PENDING_MAX)
  #othersRead: Promise<void> | undefined
  /** Approvals that are being written to the store. */
  #opening = 0
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(options: ApprovalOptions) {
    const { store, clock, log, pendingMax = PENDING_MAX } = options
    this.#options = options
    this.#pendingMax = pendingMax
    this.#matcher = new ReplyMatcher(store, this.#open)
    this.#expiry = new ExpiryTimer(clock, () => this.#expire())
    this.#dispatcher = new Dispatcher({
      clock,
      log,
      read: async (key) => (this.#owned.has(keyText(key)) ? store.get(key) : undefined),
      acknowledged: (approval) => this.#acknowledged(approval),
    })
    // Programs and tool calls read their decision themselves: they call `get` or `decision`.
    for (const gate of ['event', 'tool'] as const) this.#dispatcher.handle(gate, async () => {})
    const forget = options.notices?.listen((notice) => {
      if (notice.what === 'approval')
        this.#noticed(notice).catch((error: unknown) => log.warn('approval of another node not read', { error }))
    })
    this.#unsubscribe = forget ? [forget] : []
  }

  /** True between `start` and `stop`. */
  get isRunning(): boolean {
    return this.#state === 'running'
  }

  /** Resumes the approvals of the shards that this process owns. Before this, nothing expires and no gate is called. */
  async start(): Promise<void> {
    this.#state = 'running'
    this.#unsubscribe = [...this.#unsubscribe, await this.#follow()]
    await this.#readOthers()
  }

  /** After this call no approval expires, no gate is called, and `decision` does not settle. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#expiry.stop()
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    this.#followEvents()
    await this.#dispatcher.stop()
  }

  async open(question: ApprovalRequest): ReturnType<Approvals['open']> {
    const { bus, clock, queued, store } = this.#options
    const isFull = this.#open.size + this.#opening >= this.#pendingMax
    const known = isFull || this.#open.get(question) ? await store.get(question) : undefined
    if (isFull && !known) throw new AppError('unavailable', `${this.#pendingMax} approvals wait for an answer: there cannot be more`)
    // After a start every waiting turn opens its question again. An open approval is not written again and gets no second prompt.
    const owned = this.#ownerOf(question)
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
    this.#tell(kept.approval)
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
    if (decided.won) this.#tell(decided.approval)
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

  /** Resolves to the decided approval; to undefined if `signal` aborts first, or there is no approval of this key. */
  async decision(key: ApprovalKey, signal: AbortSignal): Promise<Approval | undefined> {
    const { promise, resolve } = Promise.withResolvers<Approval | undefined>()
    const text = keyText(key)
    const waiters = this.#waiters.get(text) ?? { key, resolve: new Set() }
    this.#waiters.set(text, waiters)
    waiters.resolve.add(resolve)
    const leave = (): void => resolve(undefined)
    signal.addEventListener('abort', leave, { once: true })
    try {
      const approval = await this.get(key)
      if (approval?.state !== 'pending') return approval
      return signal.aborted ? undefined : await promise
    } finally {
      signal.removeEventListener('abort', leave)
      waiters.resolve.delete(resolve)
      if (waiters.resolve.size === 0 && this.#waiters.get(text) === waiters) this.#waiters.delete(text)
    }
  }

  matchReply(channel: Channel, inbound: Inbound): ReturnType<ReplyMatcher['match']> {
    if (this.#options.ownership.ownsAll) return this.#matcher.match(channel, inbound)
    // A prompt that another process sent is in the store before anybody can answer it.
    return this.#readOthers().then(() => this.#matcher.match(channel, inbound))
  }

  hint(channel: Channel, inbound: Inbound): Promise<string | undefined> | undefined {
    const open = this.#matcher.openQuestion(channel, inbound)
    if (!open || this.#hinted.has(keyText(open))) return undefined
    this.#hinted.set(keyText(open), true)
    return this.#hintOf(open)
  }

  isAsking(channel: Channel, inbound: Inbound): boolean {
    return this.#matcher.isAsking(channel, inbound)
  }

  async #hintOf(open: OpenApproval): Promise<string | undefined> {
    const approval = await this.#options.store.get(open)
    if (approval?.state !== 'pending') return undefined
    const [approve = ''] = open.approveKeywords
    const [reject = ''] = open.rejectKeywords
    return gatewayText('open_question', this.#texts(), { question: approval.title, approve, reject })
  }

  handleReply(message: StartedMessage): Promise<void> {
    const { store, inbox, clock, channels, queued } = this.#options
    const decide: ApprovalRegistry['decide'] = (key, decision, number) => this.decide(key, decision, number)
    const whoOf = (approval: Approval): Answerer => this.#answererOf(approval, message)
    return handleReply({ store, inbox, matcher: this.#matcher, clock, channels, texts: this.#texts(), queued, whoOf, decide }, message)
  }

  /** The sender of a reply: an operator in a conversation of `[approvals] channels`, where an entry of the allowlist names the sender. */
  #answererOf(approval: Approval, { channel: name, message }: StartedMessage): Answerer {
    const channel = this.#options.channels().find((candidate) => candidate.name === name)
    if (!channel) return { standing: 'unverified', isAsked: false }
    const own = standingOfSender(channel, message, this.#options.operators(name))
    const prompt = answeredPrompt(approval, name, message)
    const isOperator = isAtLeast(own, 'listed') && prompt !== undefined && isOperatorsConversation(prompt, this.#options)
    return { standing: isOperator ? 'operator' : own, isAsked: prompt !== undefined, source: sourceOfMessage(name, message.sender) }
  }

  async current(message: Outbound, limits: Channel['limits']): Promise<Outbound> {
    const [button] = message.buttons ?? []
    const token = button && tokenIn(button.value)
    const approval = token === undefined ? undefined : await this.#options.store.byToken(token)
    return approval && approval.state !== 'pending' ? decidedPrompt(message, approval, limits, this.#texts()) : message
  }

  /** Finds decisions that another process, or the end of a turn, wrote to the store, and approvals that another process opened. */
  async look(change: StoreChange = { shards: null }): Promise<void> {
    const { ownership, store } = this.#options
    const filter = ownership.ownsAll ? ({ decided: true } as const) : {}
    const read = async (owned: OwnedStore): Promise<void> => {
      for await (const approval of unfinishedApprovals(owned.approvals, filter)) this.#found(approval, owned)
    }
    // All at once, so that the store can read the approvals of all shards together.
    await Promise.all(ownership.held(change).map(read))
    if (ownership.ownsAll) return
    await this.#readOthers()
    for (const waiters of [...this.#waiters.values()]) {
      const approval = await store.get(waiters.key)
      if (approval && approval.state !== 'pending') this.#decided(approval)
    }
  }

  #tell({ runId, stepId }: ApprovalKey): void {
    this.#options.notices?.send({ what: 'approval', runId, stepId })
  }

  /** Reads an approval that another node has opened or decided. */
  async #noticed(key: ApprovalKey): Promise<void> {
    if (!this.isRunning) return
    const approval = await this.#options.store.get(key)
    if (!approval) return
    const text = keyText(key)
    if (approval.state !== 'pending') {
      if (this.#open.get(key) || this.#waiters.has(text) || this.#owned.has(text)) this.#decided(approval)
    } else if (!this.#open.get(key)) this.#keep(approval, undefined)
  }

  #texts(): GatewayTexts {
    return this.#options.texts?.() ?? {}
  }

  #follow(): Promise<() => void> {
    return this.#options.ownership.onShards(
      (owned) => this.#take(owned),
      async (owned) => this.#drop(owned),
    )
  }

  /** Takes up the approvals of these shards until the lease is lost. */
  async #take(owned: OwnedStore): Promise<void> {
    owned.lease.lost.addEventListener('abort', () => this.#drop(owned), { once: true })
    let found = 0
    for await (const approval of unfinishedApprovals(owned.approvals)) {
      found++
      this.#found(approval, owned)
    }
    if (found > 0) this.#options.log.info('resuming open approvals', { approvals: found })
  }

  #found(approval: Approval, owned: OwnedStore): void {
    // The lease may be lost, or about to be given up.
    if (this.#options.ownership.of(owned.lease.shards?.from ?? -1) !== owned) return
    if (approval.state === 'pending') this.#keep(approval, owned)
    else {
      this.#owned.set(keyText(approval), owned)
      this.#decided(approval)
    }
  }

  #drop(owned: OwnedStore): void {
    for (const [key, holder] of this.#owned) if (holder === owned) this.#owned.delete(key)
  }

  /** Refreshes the approvals of other processes in the index. Callers share a read that has not begun. */
  #readOthers(): Promise<void> {
    if (this.#options.ownership.ownsAll) return Promise.resolve()
    const read = async (): Promise<void> => {
      this.#othersRead = undefined
      await this.#open.refresh(this.#options.store, (key) => this.#owned.has(keyText(key)))
    }
    this.#othersRead ??= Promise.resolve().then(read)
    return this.#othersRead
  }

  /** Returns the store of the process that runs the gate; undefined when that is not this one. */
  #ownerOf({ gate, runId, session }: Pick<ApprovalRequest, 'gate' | 'runId' | 'session'>): OwnedStore | undefined {
    return this.#options.ownership.of(gate === 'tool' ? shardOfTurn(session ?? null, runId) : shardOf(runId))
  }

  #keep(approval: Approval, owned: OwnedStore | undefined): void {
    this.#open.set(approval)
    if (!owned) return
    this.#owned.set(keyText(approval), owned)
    if (this.isRunning && approval.expiresAtMs !== null) this.#expiry.arm(approval.expiresAtMs)
  }

  /** Removes a decided approval from the open ones, answers its waiters and dispatches it. */
  #decided(approval: Approval): void {
    this.#open.delete(approval)
    this.#matcher.remember(approval)
    const key = keyText(approval)
    const waiters = this.#waiters.get(key)
    this.#waiters.delete(key)
    for (const resolve of waiters?.resolve ?? []) resolve(approval)
    this.#dispatch(approval)
  }

  /** Gives a decision to its gate here. The owner of another gate finds the decision in the store. */
  #dispatch(approval: Approval): void {
    const key = keyText(approval)
    const owned = this.#owned.get(key) ?? this.#ownerOf(approval)
    if (!owned || !this.isRunning) return
    this.#owned.set(key, owned)
    this.#dispatcher.enter(approval)
  }

  /** Records that the gate has taken the decision, with its confirmations in the same commit. */
  async #acknowledged(dispatched: Approval): Promise<void> {
    const { bus, channels, clock, queued, store } = this.#options
    const owned = this.#owned.get(keyText(dispatched))
    if (!owned) return
    const approval = (await store.get(dispatched)) ?? dispatched
    const nowMs = clock.nowMs()
    const replies = confirmations(approval, { channels: channels(), texts: this.#texts(), nowMs })
    queued(waitingReplies(replies, await owned.approvals.acknowledge(approval, nowMs, replies)))
    this.#owned.delete(keyText(approval))
    // The decision may have been made before `open` had put the approval among the open ones.
    if (this.#open.get(approval)) this.#decided(approval)
    emitResolved(bus, approval)
  }

  /** Expires approvals whose time has come. Resolves to the time of the next one. */
  async #expire(): Promise<number | undefined> {
    const { clock, log } = this.#options
    const nowMs = clock.nowMs()
    const owned = () => [...this.#open.values()].filter((open) => this.#owned.has(keyText(open)))
    const expired = owned().filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)
    const results = await Promise.allSettled(expired.map((key) => this.decide(key, { state: 'expired', by: 'timeout' })))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) log.error('approvals not expired', { error: failed.reason })
    const left = owned().flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]))
    const next = left.reduce((least, atMs) => Math.min(least, atMs), Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return undefined
    return failed ? Math.max(next, nowMs + EXPIRE_RETRY_MS) : next
  }

  /** Follows the events of the bus only while an approval is open, because no event concerns it otherwise. */
  #followEvents(): void {
    if (this.#open.size > 0 && this.#state !== 'stopped')
      this.#leaveBus ??= this.#options.bus.subscribe(({ envelope }) => this.#onEvent(envelope))
    else {
      this.#leaveBus?.()
      this.#leaveBus = undefined
    }
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
