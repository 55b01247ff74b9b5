/** The approval registry (§3, §6): asks people durably, takes the first answer, gives it to the gate, then tells everybody. */

import { waitingReplies } from '@sluice/delivery'
import {
  AppError,
  type Approval,
  type ApprovalKey,
  type ApprovalStore,
  type Approvals,
  type Channel,
  type Clock,
  type EventEnvelope,
  type Inbound,
  type Logger,
  type Outbound,
  type Question,
  type Waiting,
} from '@sluice/sdk'
import { type Access, type ApprovalCaller, accessOf, operatorsApprove } from './access.ts'
import { type Answers, createAnswers, tokenIn } from './answers.ts'
import { type AskingDeps, askedWith, askingOf, promptsOf } from './asking.ts'
import { Dispatcher } from './dispatch.ts'
import { createExpiry } from './expiry.ts'
import { boundedFeedback } from './keywords.ts'
import { keyText, newApproval } from './new-approval.ts'
import { PendingApprovals } from './pending.ts'
import { confirmations, overtaken } from './prompts.ts'
import { unknownApproval } from './refusals.ts'
import { type ApprovalEvents, tellRequested, tellResolved } from './tell.ts'
import { unsettled } from './unsettled.ts'

export interface ApprovalRegistryDeps extends AskingDeps {
  readonly store: ApprovalStore
  readonly bus: ApprovalEvents
  readonly clock: Clock
  readonly log: Logger
  /** Told of messages that wait to be sent, once they are durable. */
  queued(replies: readonly Waiting[]): void
  /** Questions that wait at once; default: `PENDING_MAX`. */
  readonly pendingMax?: number
}

type Decision = Parameters<Approvals['decide']>[1]

export interface ApprovalRegistry extends Approvals {
  /** As `Approvals.decide`; with `inbox`, that message is done in the same commit if its decision won. */
  decide(key: ApprovalKey, decision: Decision, inbox?: number): ReturnType<Approvals['decide']>
  /** What a caller of the API may see and decide. */
  access(approval: Pick<Approval, 'gate' | 'owner'>, caller: ApprovalCaller): Access
  /** True if somebody would be asked: a conversation there is, or a target that is named or configured. */
  reaches(question: Pick<Question, 'origin' | 'channels'>): boolean
  /** Resolves once it is decided, whoever did it; undefined if `signal` aborts before, or nobody opened it. */
  decision(key: ApprovalKey, signal: AbortSignal): Promise<Approval | undefined>
  /** The approval a text answers, if it answers one. */
  answered(channel: Channel, inbound: Inbound): ReturnType<Answers['keyOf']>
  pressed: Answers['pressed']
  /** The message as it is to be sent now: a prompt may have waited for longer than its question. */
  current(message: Outbound, limits: Channel['limits']): Promise<Outbound>
  /** Takes up what the last run left: what waits, and what is decided and not taken. Before this, nothing expires and nobody is asked. */
  start(): Promise<void>
  readonly isRunning: boolean
  /** Looks for decisions of other processes. */
  look(): Promise<void>
  /** Nothing expires and no gate is asked any more; who waits is not told anything. */
  stop(): Promise<void>
}

/** Questions that wait at once. */
export const PENDING_MAX = 10_000
const EXPIRE_RETRY_MS = 5000

export function createApprovals(deps: ApprovalRegistryDeps): ApprovalRegistry {
  const { store, bus, clock, log, pendingMax = PENDING_MAX } = deps
  const pending = new PendingApprovals()
  const answers = createAnswers({ store, pending })
  /** Who waits for a decision in this process; bounded by what is pending. */
  const waiting = new Map<string, Set<(approval: Approval) => void>>()
  /** Questions on their way to the disk. */
  let opening = 0
  let state: 'new' | 'running' | 'stopped' = 'new'

  const dispatcher = new Dispatcher({
    clock,
    log,
    read: store.get,
    async acknowledged(key) {
      const approval = (await store.get(key)) ?? key
      const nowMs = clock.nowMs()
      const replies = confirmations(approval, deps.channels(), nowMs)
      deps.queued(waitingReplies(replies, await store.settle(approval, nowMs, replies)))
      // It may have been decided before whoever opened it had put it where those are that wait.
      if (pending.get(approval)) taken(approval)
      tellResolved(bus, approval)
    },
  })
  // Those who wait for these two look at what is decided by themselves.
  for (const gate of ['event', 'tool'] as const) dispatcher.handle(gate, async () => {})

  /** From now on it is decided, whoever did it. */
  const taken = (approval: Approval): void => {
    pending.remove(approval)
    answers.decided(approval)
    const key = keyText(approval)
    const listeners = waiting.get(key)
    waiting.delete(key)
    for (const listener of listeners ?? []) listener(approval)
    if (state === 'running') dispatcher.enter(approval)
  }

  const decide: ApprovalRegistry['decide'] = async (key, { state: outcome, by, feedback }, inbox) => {
    const decision = { state: outcome, by, feedback: boundedFeedback(feedback ?? ''), atMs: clock.nowMs() }
    const decided = await store.decide(key, decision, inbox)
    if (!decided) throw unknownApproval(key)
    if (pending.get(key)) taken(decided.approval)
    else if (decided.won && state === 'running') dispatcher.enter(decided.approval)
    return decided
  }

  const expiry = createExpiry(clock, async () => {
    const nowMs = clock.nowMs()
    const over = [...pending.values()].filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)
    const results = await Promise.allSettled(over.map((key) => decide(key, { state: 'expired', by: 'timeout' })))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed) log.error('approvals that are over could not be ended', { error: failed.reason })
    const left = [...pending.values()].flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]))
    const next = left.reduce((least, atMs) => Math.min(least, atMs), Number.POSITIVE_INFINITY)
    if (next === Number.POSITIVE_INFINITY) return undefined
    return failed ? Math.max(next, nowMs + EXPIRE_RETRY_MS) : next
  })

  const keep = (approval: Approval): void => {
    pending.set(approval)
    if (state === 'running' && approval.expiresAtMs !== null) expiry.by(approval.expiresAtMs)
  }

  /** A prompt was sent: from now on its provider id is known, by which answers name it. */
  const learn = async (outbox: number): Promise<void> => {
    const waits = pending.awaiting(outbox)
    const approval = waits && (await store.get(waits))
    if (approval?.state === 'pending' && pending.get(approval)) pending.set(approval)
  }
  const look = async (): Promise<void> => {
    for await (const approval of unsettled(store, { decided: true })) taken(approval)
  }
  /** The end of a turn withdraws its questions in the store. */
  const mayHaveWithdrawn = (event: EventEnvelope): boolean => {
    if (event.type === 'delivery') return event.direction === 'inbound' && event.state === 'dead' && pending.size > 0
    if (event.type !== 'turn_completed' && event.type !== 'turn_failed') return false
    return [...pending.values()].some(({ runId }) => runId === event.turn_id)
  }
  const leaveBus = bus.subscribe(({ envelope }) => {
    if (state === 'running' && mayHaveWithdrawn(envelope))
      look().catch((error: unknown) => log.error('questions of turns that ended could not be read', { error }))
    if (envelope.type !== 'delivery' || envelope.direction !== 'outbound' || envelope.state !== 'sent') return
    learn(envelope.number).catch((error: unknown) => log.warn('the id of a prompt could not be read', { outbox: envelope.number, error }))
  })

  return {
    get isRunning() {
      return state === 'running'
    },
    async open(question) {
      const isFull = pending.size + opening >= pendingMax
      const known = isFull || pending.get(question) ? await store.get(question) : undefined
      if (isFull && !known) throw new AppError('unavailable', `${pendingMax} approvals wait for an answer: there cannot be more`)
      // After a start all who wait ask again: prompts are not made, nor anything written, for a question that stands.
      if (known?.state === 'pending' && known.gate === question.gate) {
        keep(known)
        return { opened: false, approval: known, asked: [] }
      }
      const approval = newApproval(question, clock.nowMs())
      const asking = askingOf(question, deps)
      const prompts = promptsOf(asking, approval)
      opening += 1
      const kept = await store.open(approval, prompts.flat()).finally(() => {
        opening -= 1
      })
      if (kept.approval.gate !== question.gate)
        throw new AppError('conflict', 'Somebody else asks under this run_id and step_id', { fields: { state: kept.approval.state } })
      if (kept.approval.state === 'pending') keep(kept.approval)
      if (!kept.opened) return { ...kept, asked: [] }
      const numbers = kept.approval.prompts.map(({ number }) => number)
      deps.queued(waitingReplies(prompts.flat(), numbers))
      tellRequested(bus, kept.approval, operatorsApprove(deps.targets()))
      return { ...kept, asked: askedWith(asking, prompts, numbers) }
    },
    decide,
    get: (key) => store.get(key),
    access: (approval, caller) => accessOf(approval, caller, deps.targets()),
    taker: (gate, take) => dispatcher.handle(gate, take),
    reaches: (question) => askingOf(question, deps).conversations.length > 0,
    async decision(key, signal) {
      const { promise, resolve } = Promise.withResolvers<Approval | undefined>()
      const text = keyText(key)
      const listeners = waiting.get(text) ?? new Set()
      waiting.set(text, listeners.add(resolve))
      const leave = (): void => resolve(undefined)
      signal.addEventListener('abort', leave, { once: true })
      try {
        const approval = await store.get(key)
        if (approval?.state !== 'pending') return approval
        return signal.aborted ? undefined : await promise
      } finally {
        signal.removeEventListener('abort', leave)
        listeners.delete(resolve)
        if (listeners.size === 0 && waiting.get(text) === listeners) waiting.delete(text)
      }
    },
    answered: answers.keyOf,
    pressed: answers.pressed,
    async current(message, limits) {
      const [button] = message.buttons ?? []
      const token = button && tokenIn(button.value)
      const approval = token === undefined ? undefined : await store.byToken(token)
      return approval && approval.state !== 'pending' ? overtaken(message, approval, limits) : message
    },
    async start() {
      state = 'running'
      let unsettledFound = 0
      for await (const approval of unsettled(store)) {
        unsettledFound++
        if (approval.state === 'pending') keep(approval)
        else dispatcher.enter(approval)
      }
      if (unsettledFound > 0) log.info('taking up approvals the last run left', { approvals: unsettledFound })
    },
    look,
    async stop() {
      state = 'stopped'
      expiry.stop()
      leaveBus()
      await dispatcher.stop()
    },
  }
}
