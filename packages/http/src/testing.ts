/** A gateway without a port: the real application and store around an agent that says what a test wants. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Agent, TurnRequest } from '@sluice/agent'
import { createApprovals } from '@sluice/approvals'
import { gatewaySection } from '@sluice/config'
import { createClients } from '@sluice/delivery'
import type { Live, Runtime } from '@sluice/runtime'
import {
  createEventBus,
  createForwardingWatch,
  createLiveView,
  type HideSecrets,
  newToken,
  noSecrets,
  type Snapshot,
} from '@sluice/runtime'
import { createHealthWatch } from '@sluice/runtime/health'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import type { LogFields, Observation, Observer, Role, Sops, Store, TurnEnd, Waiting } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import { afterEach } from 'vitest'
import type { App, AppParts } from './app.ts'
import { type Auth, createAuth } from './auth.ts'
import { BodyBudget } from './body-budget.ts'
import { EVERY_PATH } from './middleware/observe.ts'
import { createLimits } from './middleware/rate-limit.ts'
import type { Intake } from './routes/webhooks.ts'
import { createFetch, type Fetch } from './server.ts'
import { createStreams } from './streams/streams.ts'

export interface TestGatewayOptions {
  /** Masks secrets; default: there are none. */
  readonly hide?: HideSecrets
  /** Of `[gateway]`, as in the file. */
  readonly config?: v.InferInput<typeof gatewaySection.schema>
  readonly live?: Partial<Pick<Live, 'routes' | 'stubs' | 'features' | 'tools' | 'observers' | 'metricsLoopbackOnly' | 'channels'>>
  /** What takes the messages of channels; without it, none is served. */
  readonly receive?: Intake['receive']
  readonly demandsProof?: boolean
  /** The bytes of webhook bodies that may be in memory at once. */
  readonly bodyBytesMax?: number
  /** Told when deliveries have been made due. */
  readonly wake?: () => void
  /** Told of replies that were queued. */
  readonly queued?: (replies: readonly Waiting[]) => void
  /** `[approvals] channels`. */
  readonly approvalChannels?: readonly string[]
  /** The engine of procedures. */
  readonly sops?: Partial<Sops>
  readonly streams?: AppParts['streams']
  /** True: the daemon's own streams. */
  readonly withStreams?: boolean
  /** What the agent answers; a rejection is a failed turn. Default: `re: <text>`. */
  readonly reply?: (request: TurnRequest) => string | Promise<string>
}

export interface TestRequest extends Omit<RequestInit, 'body'> {
  readonly body?: string | Uint8Array
  /** The socket's peer; default 127.0.0.1. */
  readonly peer?: string
}

export interface TestGateway {
  readonly runtime: Runtime
  readonly store: Store
  /** Where the store is kept. */
  readonly file: string
  readonly clock: TestClock
  readonly auth: Auth
  readonly fetch: Fetch
  /** The parts that the application is made from. */
  readonly parts: AppParts
  /** From level info up. */
  readonly logs: readonly { readonly level: string; readonly message: string; readonly fields: LogFields }[]
  readonly observations: readonly Observation[]
  /** The requests the agent was given. */
  readonly turns: readonly Omit<TurnRequest, 'signal' | 'listen' | 'approve'>[]
  request(path: string, init?: TestRequest): Promise<Response>
  /** A new device: its id and its token. */
  pair(name?: string, expiresAtMs?: number | null, role?: Role): Promise<{ readonly token: string; readonly device: string }>
  /** The turns the agent was asked to resume if it had lost them. */
  readonly resumed: readonly string[]
  /** Puts another configuration in force, as a reload does. */
  reload(config: NonNullable<TestGatewayOptions['config']>): void
  close(): Promise<void>
}

/** Every route of an application, without its middleware. */
export const routesOf = ({ routes }: App): { readonly method: string; readonly path: string }[] => {
  const named = routes.filter(({ path }) => path !== EVERY_PATH).map(({ method, path }) => [`${method} ${path}`, { method, path }] as const)
  return [...new Map(named).values()]
}

const HOST = '127.0.0.1:42617'

/** For the test file that calls it: makes gateways and closes them after each test. */
export function testGateways(): typeof testGateway {
  const open: TestGateway[] = []
  afterEach(async () => {
    for (const gateway of open.splice(0)) await gateway.close()
  })
  return (options) => {
    const gateway = testGateway(options)
    open.push(gateway)
    return gateway
  }
}

export function testGateway(options: TestGatewayOptions = {}): TestGateway {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-http-'))
  const clock = testClock()
  const logs: { level: string; message: string; fields: LogFields }[] = []
  const logAt =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      logs.push({ level, message, fields })
    }
  const log = { debug: () => {}, info: logAt('info'), warn: logAt('warn'), error: logAt('error') }
  const observations: Observation[] = []
  const observer: Observer = { name: 'test', record: (observation) => void observations.push(observation) }
  const file = join(folder, 'sluice.db')
  const store = openStore({ file, clock, log })
  const turns: Omit<TurnRequest, 'signal' | 'listen' | 'approve'>[] = []
  const resumed: string[] = []
  const bus = createEventBus({ clock, run: 'test' })
  const approvals = createApprovals({
    store: store.approvals,
    bus,
    clock,
    log,
    channels: () => snapshot.channels,
    features: () => snapshot.features,
    targets: () => options.approvalChannels ?? [],
    queued: (replies) => options.queued?.(replies),
  })

  const listeners = new Set<(snapshot: Snapshot) => void>()
  let snapshot = testSnapshot({
    gateway: v.parse(gatewaySection.schema, options.config ?? {}),
    observers: [observer],
    wantsTraces: options.live?.observers?.some(({ traces }) => traces) ?? false,
    observe: (observation) => observer.record(observation),
    ...options.live,
  })
  const health = createHealthWatch({ clock, store, bus, snapshot: () => snapshot, sandbox: () => undefined })
  health.started()
  const runtime: Runtime = {
    version: '0.0.0',
    profile: 'test',
    startedAtMs: clock.nowMs(),
    store,
    agent: testAgent(store, clock, { turns, resumed }, options.reply ?? (({ text }) => `re: ${text}`)),
    bus,
    approvals,
    clock,
    log,
    hideSecrets: options.hide ?? noSecrets,
    snapshot: () => snapshot,
    onSnapshot(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    live: createLiveView(() => snapshot),
    health,
    sops: () => options.sops as Sops | undefined,
    delivery: {
      load: () => ({ messages: 0, replies: 0 }),
      ages: () => ({ messageSecs: 0, replySecs: 0 }),
      wake: options.wake ?? (() => {}),
      queued: (replies) => options.queued?.(replies),
    },
    vitals: () => ({
      startedAtMs: clock.nowMs(),
      turnsRunning: 0,
      turnsQueued: 0,
      sessionsActive: 0,
      sseClients: 0,
      wsClients: 0,
      messagesPending: 0,
      repliesPending: 0,
      oldestMessageSecs: 0,
      oldestReplySecs: 0,
      commitsQueued: 0,
      eventsDropped: 0,
      sandbox: null,
    }),
  }
  const auth = createAuth(runtime)
  const own = options.withStreams ? createStreams(runtime, auth, { sse: 0, ws: 0, dropped: 0 }) : undefined
  const streams = own ? own.endpoints : options.streams
  const intake = options.receive && { receive: options.receive, demandsProof: options.demandsProof ?? false }
  const parts: AppParts = {
    runtime,
    auth,
    clients: createClients(),
    limits: createLimits(clock),
    budget: new BodyBudget(options.bodyBytesMax),
    forwarding: createForwardingWatch(log),
    ...(streams && { streams }),
    ...(intake && { intake }),
  }
  const fetch = createFetch(parts)
  return {
    runtime,
    store,
    file,
    clock,
    auth,
    fetch,
    parts,
    logs,
    observations,
    turns,
    resumed,
    async request(path, { peer = '127.0.0.1', body, ...init } = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('host')) headers.set('host', HOST)
      const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0))
      if (body !== undefined && !headers.has('content-length')) headers.set('content-length', String(bytes.length))
      const incoming = Object.assign(Readable.from(bytes.length > 0 ? [Buffer.from(bytes)] : []), {
        socket: { remoteAddress: peer },
        headers: Object.fromEntries(headers),
      })
      return fetch(new Request(`http://${HOST}${path}`, { ...init, headers }), { incoming: incoming as never })
    },
    pair: (name = 'test', expiresAtMs = null, role = 'operator') => newToken(store, { name, role, expiresAtMs }, clock),
    reload(config) {
      snapshot = { ...snapshot, version: snapshot.version + 1, gateway: v.parse(gatewaySection.schema, config) }
      for (const listener of listeners) listener(snapshot)
    },
    async close() {
      own?.closeAll('the test is over')
      await approvals.stop()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Keeps what the real one keeps: the turn, its messages, and the state of its key. */
function testAgent(
  store: Store,
  clock: TestClock,
  { turns, resumed }: { turns: Omit<TurnRequest, 'signal' | 'listen' | 'approve'>[]; resumed: string[] },
  reply: (request: TurnRequest) => string | Promise<string>,
): Agent {
  const end = async (id: string, request: TurnRequest, outcome: Pick<TurnEnd, 'status' | 'response'>): Promise<void> => {
    const said = (role: 'user' | 'assistant', text: string) => ({ role, content: [{ type: 'text' as const, text }] })
    await store.turns.finish({
      id,
      sessionId: request.session,
      ...(request.owner !== undefined && { owner: request.owner }),
      source: request.source,
      input: request.text,
      model: 'echo',
      error: outcome.status === 'failed' ? { code: 'upstream', message: 'no answer' } : null,
      inputTokens: 1,
      outputTokens: 1,
      costUsd: 0,
      attempts: 1,
      createdAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
      messages: outcome.response === null ? [] : [said('user', request.text), said('assistant', outcome.response)],
      ...(request.idempotency ? { idempotency: request.idempotency } : {}),
      ...outcome,
    })
  }
  return {
    async run(request) {
      const id = `turn-${turns.push(request)}`
      try {
        const text = await reply(request)
        await end(id, request, { status: 'done', response: text })
        return { id, text, model: 'echo', usage: { inputTokens: 1, outputTokens: 1, costUsd: 0 }, replies: [] }
      } catch (error) {
        await end(id, request, { status: 'failed', response: null })
        throw error
      }
    },
    async accept(request) {
      const id = `turn-${turns.push(request)}`
      const { session, source, text, idempotency, owner } = request
      await store.turns.enqueue({
        id,
        sessionId: session,
        ...(owner !== undefined && { owner }),
        source,
        input: text,
        context: null,
        createdAtMs: clock.nowMs(),
        ...(idempotency ? { idempotency } : {}),
      })
      return id
    },
    ended: async () => {},
    call: async ({ tool }) => ({ outcome: 'error', output: `There is no tool "${tool}".` }),
    resume: async () => 0,
    ensureResumed: async (id) => void resumed.push(id),
    abort: (id) => id === 'turn-running',
    drain: async () => {},
    load: () => ({ running: 0, queued: 0, sessions: 0 }),
  }
}
