/** Approvals in chats: the registry, durable delivery and a store, with fake channels and a fake agent. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Admission, type Agent, newTrace, Shares, type TurnRequest } from '@sluice/agent'
import { deliverySection, NO_SHARES } from '@sluice/config'
import { type Deliveries, People, startDeliveries } from '@sluice/delivery'
import { LaneQueue } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import { createEventBus, type EventBus } from '@sluice/runtime'
import {
  type Address,
  type ApprovalRequest,
  actorName,
  agentOfSession,
  type Channel,
  type ClientId,
  type Inbound,
  MAIN_AGENT,
  markedFiles,
  type Outbound,
  type Store,
} from '@sluice/sdk'
import { openTestStore } from '@sluice/store/testing/test-store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { agentWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import { afterEach } from 'vitest'
import { ApprovalRegistry } from '../registry.ts'

/** A message that a channel sent or edited. */
export interface SentMessage extends Outbound {
  readonly channel: string
  readonly to: Address
  /** The platform's id of the message. */
  readonly id: string
  readonly isEdit: boolean
}

export interface ApprovalBenchOptions {
  /** The folder of the store; a new one unless given. */
  readonly folder?: string
  readonly clock?: TestClock
  /** Returns what the bench owns: everything unless given. */
  readonly ownership?: (store: Store) => ShardOwnership
  readonly channels?: readonly Partial<Channel>[]
  /** Returns the platform's id of the message with this number. Defaults to the number itself. */
  readonly idOf?: (number: number) => string
  /** `[approvals] channels`. */
  readonly targets?: readonly string[]
  /** The senders who are operators, in every channel. */
  readonly operators?: readonly string[]
  readonly turn?: (request: TurnRequest) => string | Promise<string>
  /** Whether an operator could answer on the dashboard; false unless given. */
  readonly hasOperator?: boolean
  /** `[delivery] max_pending`. */
  readonly maxPending?: number
}

export interface ApprovalBench {
  readonly folder: string
  readonly store: Store
  readonly ownership: ShardOwnership
  readonly clock: TestClock
  readonly bus: EventBus
  /** The number of times that approvals listen to the bus now. */
  subscribed(): number
  readonly host: TestHost
  readonly approvals: ApprovalRegistry
  readonly people: People
  readonly deliveries: Deliveries
  /** The sent messages in order. The ids of each channel are numbers from 1. */
  readonly sent: readonly SentMessage[]
  readonly turns: readonly TurnRequest[]
  /** The types of all events so far, without deliveries. */
  events(): readonly string[]
  ask(question?: Partial<ApprovalRequest>): ReturnType<ApprovalRegistry['open']>
  /** Receives a message over a channel, and resolves when all work that it causes is done. */
  say(channel: string, message: Partial<Inbound>): Promise<void>
  /** Resolves when all work that is due is done. */
  settle(): Promise<void>
  stop(): Promise<void>
}

/** Ticks without a write after which all work is done. */
const QUIET_ROUNDS = 60
const ROUNDS_MAX = 100_000

/** Resolves when all work that is due is done. */
const settled = async (store: Store): Promise<void> => {
  for (let round = 0, quiet = 0; quiet < QUIET_ROUNDS && round < ROUNDS_MAX; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    quiet = store.pending() > 0 ? 0 : quiet + 1
  }
}

/** A platform with quotes, threads, buttons and edits. */
export const richChannel = (target: 'community' | 'workspace' | 'messenger', more: Partial<Channel> = {}): Partial<Channel> => ({
  name: target,
  notifications: {
    target,
    opensThreads: target !== 'messenger',
    account: 'bot',
    to: { to: 'ops' },
    key: `channels_config.${target}.notification`,
  },
  update: async () => {},
  ...more,
})

/** Returns a function that makes benches, which are stopped after each test of the file. */
export function approvalBenches(): (options?: ApprovalBenchOptions) => Promise<ApprovalBench> {
  const open: ApprovalBench[] = []
  afterEach(async () => {
    for (const bench of open) await bench.stop()
    for (const { folder } of open.splice(0)) rmSync(folder, { recursive: true, force: true })
  })
  return async (options) => {
    const bench = await approvalBench(options)
    open.push(bench)
    return bench
  }
}

async function approvalBench(options: ApprovalBenchOptions = {}): Promise<ApprovalBench> {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'approvals-'))
  const clock = options.clock ?? testClock()
  const host = testHost({ clock })
  const { log } = host
  const store = openTestStore({ file: join(folder, 'sluice.db'), clock, log })
  const bus = createEventBus({ clock, run: 'test' })
  const sent: SentMessage[] = []
  const turns: TurnRequest[] = []
  const ids = new Map<string, number>()
  const channels = (options.channels ?? [richChannel('community')]).map((given): Channel => {
    const name = given.name ?? 'plain'
    return {
      allow: ['*', 'ann'],
      limits: { text: 1000, unit: 'utf16' },
      async send(to, outbound) {
        const next = (ids.get(name) ?? 0) + 1
        ids.set(name, next)
        const id = options.idOf?.(next) ?? String(next)
        sent.push({ ...outbound, channel: name, to, id, isEdit: false })
        return { id }
      },
      ...given,
      name,
      ...(given.update && {
        update: async (to: Address, { id }: { id: string }, outbound: Outbound) =>
          void sent.push({ ...outbound, channel: name, to, id, isEdit: true }),
      }),
    }
  })
  let deliveries: Deliveries | undefined
  let listening = 0
  const ownership = options.ownership?.(store) ?? new ShardOwnership({ store, clock, log })
  await ownership.start()
  const people = new People({ store, ownership, clock, events: bus, channels: () => channels, operators: () => options.operators ?? [] })
  const approvals = new ApprovalRegistry({
    people,
    store: store.approvals,
    ownership,
    inbox: store.inbox,
    bus: {
      emit: bus.emit.bind(bus),
      subscribe(receive) {
        listening += 1
        const unsubscribe = bus.subscribe(receive)
        return () => {
          listening -= 1
          unsubscribe()
        }
      },
    },
    clock,
    log,
    channels: () => channels,
    features: () => [],
    targets: () => options.targets ?? [],
    operators: () => options.operators ?? [],
    actorName: (by) => actorName(by, store.devices),
    queued: (replies) => deliveries?.queued(replies),
    reach: { outbox: store.outbox, hasOperator: async () => options.hasOperator ?? false },
  })
  await approvals.start()
  deliveries = await startDeliveries({
    store,
    ownership,
    approvals,
    people,
    turns: {
      agent: { ...fakeAgent(clock, turns, options.turn ?? (({ text }) => `re: ${text}`)), requestAbort: async () => false },
      lanes: new LaneQueue({ clock, permits: () => 1 }),
      clients: { ofCaller: (caller) => caller as ClientId },
    },
    limits: {
      admission: new Admission({ store: store.admissions, clock, events: bus, limitsOf: () => [] }),
      shares: new Shares({ clock, events: bus, sharesOf: () => NO_SHARES }),
      loopTurns: () => 0,
      operators: () => options.operators ?? [],
    },
    events: bus,
    clock,
    log,
    features: {
      onChange: () => () => {},
      channels: () => channels,
      config: () => v.parse(deliverySection.schema, options.maxPending === undefined ? {} : { max_pending: options.maxPending }),
      texts: () => ({}),
      models: () => [],
      pacing: () => ({ batchMs: 0, steering: 'queue' }),
      reset: () => undefined,
      agentOf: () => MAIN_AGENT,
      rooms: () => ({ isShared: false, overhears: false }),
      workspace: () => agentWorkspace(host.by.workspace),
      endCommands: async () => {},
      transcribe: () => undefined,
      procedures: () => undefined,
    },
    telemetry: { observe: () => {}, traces: () => false, within: (_, work) => work() },
    changedElsewhere: () => approvals.look(),
    scrub: (text) => text,
  })
  const inlet = deliveries
  let counter = 0
  let stopped: Promise<void> | undefined
  const stop = async () => {
    await approvals.stop()
    await inlet.stop(0)
    await ownership.stop()
    await store.close()
  }
  return {
    folder,
    store,
    ownership,
    clock,
    bus,
    subscribed: () => listening,
    host,
    approvals,
    people,
    deliveries: inlet,
    sent,
    turns,
    events: () =>
      bus
        .recent(1000)
        .map(({ envelope }) => envelope.type)
        .filter((type) => type !== 'delivery'),
    ask: (question = {}) =>
      approvals.open({
        runId: 'run-1',
        stepId: 'deploy',
        gate: 'event',
        workflow: 'release',
        title: 'Deploy 1.2?',
        message: 'All tests pass.',
        timeoutSecs: 0,
        ...question,
      }),
    async say(name, message) {
      const channel = channels.find((candidate) => candidate.name === name)
      if (!channel) throw new Error(`there is no channel ${name}`)
      counter += 1
      const inbound: Inbound = {
        id: `in-${clock.nowMs()}-${counter}`,
        account: 'bot',
        sender: 'ann',
        to: { to: 'ops' },
        text: '',
        ...message,
      }
      await inlet.receive(channel, { raw: null, verified: { by: 'test' }, receivedAtMs: clock.nowMs(), messages: [inbound] })
      await settled(store)
    },
    settle: () => settled(store),
    stop: () => (stopped ??= stop()),
  }
}

/** Ends turns as the real agent does: in one commit with the replies. */
const fakeAgent = (
  clock: TestClock,
  turns: TurnRequest[],
  answer: (request: TurnRequest) => string | Promise<string>,
): Pick<Agent, 'run'> => ({
  async run(request) {
    turns.push(request)
    const text = await answer(request)
    const { delivery } = request
    if (!delivery) throw new Error('no delivery')
    const { owned } = delivery
    const usage = { inputTokens: 1, outputTokens: 1, costUsd: 0 }
    const end = { status: 'done', response: text, model: 'm', error: null, messages: [], ...usage } as const
    const replies = await owned.turns.finish({
      ...end,
      id: delivery.turnId,
      sessionId: request.session,
      agent: agentOfSession(request.session),
      source: request.source,
      input: request.text,
      attempts: delivery.attempts,
      createdAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
      delivery: {
        inbox: delivery.inbox,
        replies: delivery.reply(
          text,
          markedFiles(text).map((path) => ({ path })),
          newTrace(),
        ),
      },
    })
    return { id: delivery.turnId, text, model: 'm', finishReason: 'stop', usage, replies }
  },
})
