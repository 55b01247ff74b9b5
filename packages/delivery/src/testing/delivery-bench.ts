/** Durable delivery on a real store, with a fake channel and a fake agent. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Admission, type AdmissionDeps, type Agent, newTrace, Shares, type SharesDeps, type TurnRequest } from '@sluice/agent'
import { deliverySection, NO_SHARES } from '@sluice/config'
import { LaneQueue } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import {
  AppError,
  agentOfSession,
  type Channel,
  type ClientId,
  type Clock,
  type GatewayTexts,
  type Inbound,
  MAIN_AGENT,
  markedFiles,
  type Observation,
  type Outbound,
  type OwnedStore,
  type Store,
  type Transcribe,
  type Webhook,
  type Workspace,
} from '@sluice/sdk'
import { openTestStore } from '@sluice/store/testing/test-store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { agentWorkspace } from '@sluice/testkit/memory-workspace'
import { until as untilTrue } from '@sluice/testkit/until'
import * as v from 'valibot'
import { afterEach, beforeEach, expect } from 'vitest'
import { type Deliveries, startDeliveries } from '../deliveries.ts'
import type { DeliveryOptions } from '../delivery-options.ts'
import { People } from '../people/people.ts'

let folder: string
/** The clock and the host of the test that runs. */
export let clock: TestClock
export let host: ReturnType<typeof testHost>
const stores: Store[] = []
export const running: Deliveries[] = []
const QUIET_TICKS = 60
/** Bounds the wait for a store that fails and never ends a write. */
const TICKS_MAX = 20_000

/** For each test of the file that calls it: a clock, a host and a folder, and the end of everything that was started. */
export function setUpDeliveries(): void {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'deliveries-'))
    clock = testClock()
    host = testHost({ clock })
  })
  afterEach(async () => {
    for (const deliveries of running.splice(0)) await deliveries.stop(0)
    for (const store of stores.splice(0)) await store.close()
    rmSync(folder, { recursive: true })
  })
}

export const open = (): Store => {
  const store = openTestStore({ file: join(folder, 'sluice.db'), clock, log: host.log })
  stores.push(store)
  return store
}

/** Returns the store with other parts under each of its leases. */
export const storeWith = (store: Store, parts: (owned: OwnedStore) => Partial<OwnedStore>): Store => ({
  ...store,
  under(lease) {
    const owned = store.under(lease)
    return { ...owned, ...parts(owned) }
  },
})

export const message = (id: string, more: Partial<Inbound> = {}): Inbound => ({
  id,
  account: 'our-number',
  sender: '+15550002222',
  to: { to: '+15550002222', replyTo: id },
  text: `text of ${id}`,
  ...more,
})

export interface DeliveryBench {
  readonly store: Store
  readonly channel: Channel
  readonly ownership: ShardOwnership
  readonly deliveries: Deliveries
  readonly turns: TurnRequest[]
  readonly sent: (Outbound & { readonly to: unknown })[]
  readonly observed: Observation[]
  /** The conversations whose commands were ended. */
  readonly endedCommands: string[]
  receive(...messages: Inbound[]): ReturnType<Deliveries['receive']>
}

export interface DeliveryBenchOptions {
  readonly store?: Store
  /** Owns all shards unless given. */
  readonly ownership?: ShardOwnership
  readonly channel?: Partial<Channel>
  readonly send?: Channel['send']
  readonly turn?: (request: TurnRequest) => string | Promise<string>
  /** Aborts a turn; no turn can be aborted unless given. */
  readonly abort?: (turnId: string) => boolean
  readonly texts?: GatewayTexts
  readonly config?: object
  readonly turnsMax?: number
  readonly limitsOf?: AdmissionDeps['limitsOf']
  /** No sender has a share unless given. */
  readonly sharesOf?: SharesDeps['sharesOf']
  readonly loopTurns?: number
  /** Without it, conversations never begin again without their history. */
  readonly reset?: ReturnType<DeliveryOptions['features']['reset']>
  /** No question waits unless given. */
  readonly isAsking?: () => boolean
  /** No message answers an approval unless given. */
  readonly matchReply?: DeliveryOptions['approvals']['matchReply']
  /** Fails unless given. */
  readonly handleReply?: DeliveryOptions['approvals']['handleReply']
  /** Each message is a turn of its own unless given. */
  readonly pacing?: Partial<ReturnType<DeliveryOptions['features']['pacing']>>
  /** The labels of the configured models; none unless given. */
  readonly models?: readonly string[]
  /** The senders who are operators; none unless given. */
  readonly operators?: readonly string[]
  /** Further channels. */
  readonly others?: readonly Channel[]
  readonly clock?: Clock
  readonly workspace?: Workspace
  /** The workspaces by agent, in the place of `workspace`. */
  readonly workspaces?: Readonly<Record<string, Workspace>>
  readonly agentOf?: DeliveryOptions['features']['agentOf']
  /** Whether the people of a room share one conversation; true unless given. */
  readonly sharesRooms?: boolean
  /** Whether rooms keep messages that are not addressed to the bot; true unless given. */
  readonly overhears?: boolean
  /** The paths that procedures have triggers for; an array that a test may change. */
  readonly triggers?: readonly string[]
  /** Returns whether procedures have no room for a run. */
  readonly isFull?: () => boolean
  /** Whether the procedure skips every message, because it cools down. */
  readonly cools?: () => boolean
  readonly restoredAtMs?: number
  /** Recordings are files like any other unless given. */
  readonly transcribe?: Transcribe
}

export async function bench(options: DeliveryBenchOptions = {}): Promise<DeliveryBench> {
  const store = options.store ?? open()
  const turns: TurnRequest[] = []
  const sent: DeliveryBench['sent'] = []
  const observed: Observation[] = []
  const endedCommands: string[] = []
  const channel: Channel = {
    name: 'x',
    // Every sender is a named one, so that turns get the plain text.
    allow: ['*', 'anyone'],
    matches: (entry) => entry === 'anyone',
    limits: { text: 100, unit: 'utf16' },
    async send(to, outbound, signal) {
      const answer = await options.send?.(to, outbound, signal)
      sent.push({ to, ...outbound })
      return answer ?? { id: `sent-${sent.length}` }
    },
    ...options.channel,
  }
  const ownership = options.ownership ?? new ShardOwnership({ store, clock: options.clock ?? clock, log: host.log })
  if (!ownership.isStarted) await ownership.start()
  const collaborators: DeliveryOptions = {
    store,
    ownership,
    events: host.events,
    approvals: {
      matchReply: options.matchReply ?? (() => undefined),
      answersAsOperator: async (_, { sender }) => (options.operators ?? []).includes(sender),
      hint: () => undefined,
      isAsking: options.isAsking ?? (() => false),
      handleReply: options.handleReply ?? (() => Promise.reject(new Error('no reply to an approval comes here'))),
      current: async (outbound) => outbound,
    },
    changedElsewhere: async () => {},
    clock: options.clock ?? clock,
    log: host.log,
    restoredAtMs: options.restoredAtMs,
    features: {
      onChange: () => () => {},
      channels: () => [channel, ...(options.others ?? [])],
      config: () => v.parse(deliverySection.schema, options.config ?? {}),
      texts: () => options.texts ?? {},
      agentOf: options.agentOf ?? (() => MAIN_AGENT),
      models: () => options.models ?? [],
      pacing: () => ({ batchMs: 0, steering: 'queue', ...options.pacing }),
      reset: () => options.reset,
      rooms: () => ({ isShared: options.sharesRooms ?? true, overhears: options.overhears ?? true }),
      workspace(agent) {
        const workspace = options.workspaces ? options.workspaces[agent] : (options.workspace ?? host.by.workspace)
        return workspace && agentWorkspace(workspace)
      },
      endCommands: async (session) => void endedCommands.push(session),
      transcribe: () => options.transcribe,
      procedures: () =>
        options.triggers && {
          matches: (_source, path) => options.triggers?.includes(path) === true,
          async fire(_event, also) {
            const isFull = options.isFull?.() === true
            if (isFull && also?.repeats) throw new AppError('unavailable', 'as many runs wait as may', { retryAfterSecs: 30 })
            if (options.cools?.()) return [{ sop: 'procedure', status: 'skipped', reason: 'it cools down' }]
            if (also?.inbox !== undefined) await store.inbox.done(also.inbox, clock.nowMs())
            return [{ sop: 'procedure', status: 'started', runId: 'run' }]
          },
        },
    },
    people: new People({
      store,
      ownership,
      clock: options.clock ?? clock,
      events: host.events,
      channels: () => [channel, ...(options.others ?? [])],
      operators: () => options.operators ?? [],
    }),
    limits: {
      admission: new Admission({
        store: store.admissions,
        clock: options.clock ?? clock,
        events: host.events,
        limitsOf: options.limitsOf ?? (() => []),
      }),
      shares: new Shares({ clock: options.clock ?? clock, events: host.events, sharesOf: options.sharesOf ?? (() => NO_SHARES) }),
      loopTurns: () => options.loopTurns ?? 0,
      operators: () => options.operators ?? [],
    },
    turns: {
      agent: {
        ...testAgent(turns, options.loopTurns !== undefined, options.turn ?? (({ text }) => `re: ${text}`)),
        requestAbort: async (id) => options.abort?.(id) ?? false,
      },
      lanes: new LaneQueue({ clock: options.clock ?? clock, permits: () => options.turnsMax ?? 8 }),
      clients: { ofCaller: (caller) => caller as ClientId },
    },
    telemetry: { observe: (observation) => void observed.push(observation), traces: () => false, within: (_, work) => work() },
    scrub: (text) => text.replaceAll('our-token', '[redacted]'),
  }
  const deliveries = await startDeliveries(collaborators)
  running.push(deliveries)
  return {
    store,
    channel,
    ownership,
    deliveries,
    turns,
    sent,
    observed,
    endedCommands,
    receive: (...messages) =>
      deliveries.receive(channel, { raw: bodyOf(channel, messages), verified: { by: 'test' }, receivedAtMs: clock.nowMs(), messages }),
  }
}

/** A webhook whose requests are lists of messages as JSON. */
export const bodyWebhook = (parse = (messages: readonly Inbound[]): readonly Inbound[] => messages): Webhook => ({
  path: '/x',
  parsesBodyAlone: true,
  verify: () => ({ by: 'test' }),
  parse: ({ body }) => parse(JSON.parse(Buffer.from(body).toString())),
  sample: () => ({ headers: {}, body: '' }),
})

const bodyOf = ({ webhook }: Channel, messages: readonly Inbound[]): Uint8Array | null =>
  webhook?.parsesBodyAlone ? Buffer.from(JSON.stringify(messages)) : null

/** Ends turns as the real agent does: in one commit with the replies. */
const testAgent = (
  turns: TurnRequest[],
  hasHistory: boolean,
  answer: (request: TurnRequest) => string | Promise<string>,
): Pick<Agent, 'run'> => ({
  async run(request) {
    if (request.delivery) request.onId?.(request.delivery.turnId)
    if (request.signal?.aborted) throw new AppError('aborted', 'The turn was stopped')
    turns.push(request)
    const text = await answer(request)
    const { delivery } = request
    if (!delivery) throw new Error('no delivery')
    const { owned } = delivery
    const usage = { inputTokens: 1, outputTokens: 1, costUsd: 0 }
    const replies = await owned.turns.finish({
      id: delivery.turnId,
      sessionId: request.session,
      agent: agentOfSession(request.session),
      source: request.source,
      status: 'done',
      input: request.text,
      response: text,
      model: 'm',
      error: null,
      ...usage,
      attempts: delivery.attempts,
      createdAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
      messages: hasHistory ? [{ role: 'assistant', content: [{ type: 'text', text }] }] : [],
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

/** Waits until all work is done that the test's clock allows. */
export const settle = async () => {
  // A commit may wait for a moment of real time, which is any number of ticks.
  for (let [tick, quiet] = [0, 0]; tick < TICKS_MAX && quiet < QUIET_TICKS; tick++) {
    await new Promise((resolve) => setImmediate(resolve))
    quiet = stores.some((store) => store.pending() > 0) ? 0 : quiet + 1
  }
}
export const states = async ({ store }: DeliveryBench) => ({
  inbox: (await store.inbox.list({ limit: 100 })).map(({ state }) => state),
  outbox: (await store.outbox.list({ limit: 100 })).map(({ state }) => state),
})
/** Advances the clock until the condition is true, at most by 20 minutes, which is more than all delays together. */
export const advanceUntil = async (isTrue: () => boolean) => {
  for (let minute = 0; minute < 20 && !isTrue(); minute++) {
    await clock.advance(60_000)
    await settle()
  }
  expect(isTrue()).toBe(true)
}
/** Waits by real time, not by ticks: a module that the work imports on first use takes any number of ticks on a busy machine. */
export const until = (isTrue: () => boolean): Promise<void> => untilTrue(isTrue)

/** Waits until the newest row of the inbox or outbox has these members. */
export const untilRow = async (box: { list(filter: { limit: number }): Promise<readonly object[]> }, wanted: object) => {
  let row: object | undefined
  for (let turn = 0; turn < 20_000; turn++) {
    row = (await box.list({ limit: 1 }))[0]
    if (Object.entries(wanted).every(([key, value]) => row && Reflect.get(row, key) === value)) return
  }
  expect(row).toMatchObject(wanted)
}
