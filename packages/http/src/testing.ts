/** The HTTP side without a port: the real application and store around an agent that answers as a test says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { Admission, type Agent, Shares, type TurnRequest } from '@sluice/agent'
import { ApprovalRegistry } from '@sluice/approvals'
import { type ClientShares, gatewaySection, sharesOf } from '@sluice/config'
import { createClients, People } from '@sluice/delivery'
import { ShardOwnership } from '@sluice/ownership'
import {
  createEventBus,
  createSettings,
  type HideSecrets,
  History,
  newToken,
  noSecrets,
  OwnedFiles,
  RecentLog,
  type Runtime,
  readBacklog,
  type Snapshot,
} from '@sluice/runtime'
import { CommandRuns } from '@sluice/runtime/command-runs'
import { createHealthWatch } from '@sluice/runtime/health'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import {
  AppError,
  actorName,
  agentOfSession,
  type Counters,
  type Feature,
  fileNote,
  type LogFields,
  MAIN_AGENT,
  markedFiles,
  type Observation,
  type Observer,
  type Role,
  type Sops,
  type Store,
  type TurnEnd,
  type Vitals,
  type Waiting,
} from '@sluice/sdk'
import type { LibrarySettings } from '@sluice/sop'
import { ProcedureFiles } from '@sluice/sop/procedure-files'
import { openTestStore } from '@sluice/store/testing/test-store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import { afterEach } from 'vitest'
import { type Auth, createAuth } from './auth/auth.ts'
import { ForwardingWatch } from './middleware/client-peer.ts'
import { EVERY_PATH } from './middleware/observe.ts'
import { createLimits } from './middleware/rate-limit.ts'
import { BodyBudget } from './request/body-budget.ts'
import type { Connection } from './request/context.ts'
import { createApp, createApps, type ServedApp } from './server/app.ts'
import type { DaemonParts, Intake } from './server/app-parts.ts'
import { createStreams } from './streams/streams.ts'

type TestTurn = Omit<TurnRequest, 'signal' | 'approve'>

interface LogLine {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

export interface TestGatewayOptions {
  /** Masks secrets. By default nothing is masked. */
  readonly hide?: HideSecrets
  /** The `[gateway]` section, as in the file. */
  readonly config?: v.InferInput<typeof gatewaySection.schema>
  /** The shares of a device with the role client that differ from the default. */
  readonly shares?: Partial<ClientShares>
  /** Members of the snapshot in force. */
  readonly snapshot?: Partial<Snapshot>
  /** Takes the messages of channels; without it, no channel is served. */
  readonly receive?: Intake['receive']
  readonly report?: Intake['report']
  readonly refusesUnsigned?: boolean
  /** The bytes of webhook bodies that may be in memory at once. */
  readonly bodyBytesMax?: number
  /** Called when deliveries were made due. */
  readonly wake?: () => void
  /** Called with the replies that were queued. */
  readonly queued?: (replies: readonly Waiting[]) => void
  /** `[approvals] channels`. */
  readonly approvalChannels?: readonly string[]
  /** The folders of procedures; default: none. */
  readonly sopSettings?: LibrarySettings
  /** The engine of procedures. */
  readonly sops?: Partial<Sops>
  /** The counters of a store that several processes share. Default: the counters of the store. */
  readonly counters?: Counters
  readonly streams?: DaemonParts['streams']
  /** True: the streams of the daemon. */
  readonly withStreams?: boolean
  /** The features whose sections the configuration file may have. */
  readonly features?: readonly Feature[]
  /**
   * The answer of the agent; a rejection is a failed turn. Default: `re: <text>`. Its turn attaches the marked files, except those whose
   * path begins with `refused`.
   */
  readonly reply?: (request: TurnRequest) => string | Promise<string>
}

export interface TestRequest extends Omit<RequestInit, 'body'> {
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** The address of the socket's peer. Default: 127.0.0.1. */
  readonly peer?: string
}

export interface TestGateway {
  readonly runtime: Runtime
  readonly store: Store
  /** The file of the store. */
  readonly file: string
  readonly clock: TestClock
  readonly auth: Auth
  readonly fetch: (request: Request, connection: Connection) => Response | Promise<Response>
  /** The application of the snapshot in force. */
  readonly app: () => ServedApp
  /** The parts that the application is made from. */
  readonly parts: DaemonParts
  /** The lines of level info and above. */
  readonly logs: readonly LogLine[]
  readonly observations: readonly Observation[]
  /** The requests that the agent got. */
  readonly turns: readonly TestTurn[]
  request(path: string, init?: TestRequest): Promise<Response>
  /** Pairs a new device; returns its id and its token. */
  pair(name?: string, expiresAtMs?: number | null, role?: Role): Promise<{ readonly token: string; readonly device: string }>
  /** The ids of the turns that the agent was asked to resume. */
  readonly resumed: readonly string[]
  /** Starts the approvals of a process that owns everything. */
  startApprovals(): Promise<void>
  /** Puts another configuration in force, as a reload does. */
  reload(config: NonNullable<TestGatewayOptions['config']>): void
  close(): Promise<void>
}

/** Every route that a gateway serves, without its middleware. */
export function routesOf({ parts, runtime }: TestGateway): { readonly method: string; readonly path: string }[] {
  const { routes } = createApp({ ...parts, snapshot: runtime.snapshot() }).app
  const named = routes.filter(({ path }) => path !== EVERY_PATH).map(({ method, path }) => [`${method} ${path}`, { method, path }] as const)
  return [...new Map(named).values()]
}

const HOST = '127.0.0.1:42617'

/** Makes gateways for the test file that calls it, and closes them after each test. */
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
  const file = join(folder, 'sluice.db')
  const clock = testClock()
  const { log, logs } = recordLog()
  const opened = openTestStore({ file, clock, log })
  const store = options.counters ? { ...opened, counters: options.counters } : opened
  const observations: Observation[] = []
  const snapshots = testSnapshots(options, observations)
  const turns: TestTurn[] = []
  const resumed: string[] = []
  const agent = testAgent(store, clock, { turns, resumed }, options.reply ?? (({ text }) => `re: ${text}`))
  const ownership = new ShardOwnership({ store, clock, log })
  const runtime = testRuntime({ agent, store, ownership, clock, log, snapshots, folder }, options)
  const auth = createAuth(runtime)
  const own = options.withStreams ? createStreams(runtime, auth, { sse: 0, ws: 0, dropped: 0 }) : undefined
  const streams = own ? own.endpoints : options.streams
  const { receive, report = async () => {} } = options
  const intake = receive && { receive, report, refusesUnsigned: () => options.refusesUnsigned ?? false }
  const parts: DaemonParts = {
    runtime,
    auth,
    clients: createClients(),
    limits: createLimits(store.counters),
    budget: new BodyBudget(options.bodyBytesMax),
    forwarding: new ForwardingWatch(log),
    ...(streams && { streams }),
    ...(intake && { intake }),
  }
  const app = createApps(parts)
  const fetch: TestGateway['fetch'] = (request, connection) => app().app.fetch(request, connection)
  return {
    runtime,
    store,
    file,
    clock,
    auth,
    fetch,
    app,
    parts,
    logs,
    observations,
    turns,
    resumed,
    request: async (path, init) => fetch(...requestOf(path, init)),
    pair: (name = 'test', expiresAtMs = null, role = 'operator') => newToken(store, { name, role, expiresAtMs }, clock),
    async startApprovals() {
      await ownership.start()
      await runtime.approvals.start()
    },
    reload: (config) => snapshots.reload(v.parse(gatewaySection.schema, config)),
    async close() {
      own?.closeAll('the test is over')
      await runtime.approvals.stop()
      await ownership.stop()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function recordLog() {
  const logs: LogLine[] = []
  const logAt =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      logs.push({ level, message, fields })
    }
  return { logs, log: { debug: () => {}, info: logAt('info'), warn: logAt('warn'), error: logAt('error') } }
}

/** The snapshot in force, and its replacement on a reload. */
function testSnapshots(options: TestGatewayOptions, observations: Observation[]) {
  const observer: Observer = { name: 'test', record: (observation) => void observations.push(observation) }
  const listeners = new Set<(snapshot: Snapshot) => void>()
  let snapshot = testSnapshot({
    gateway: v.parse(gatewaySection.schema, options.config ?? {}),
    observers: [observer],
    wantsTraces: options.snapshot?.observers?.some(({ traces }) => traces) ?? false,
    observe: (observation) => observer.record(observation),
    ...options.snapshot,
  })
  return {
    current: () => snapshot,
    onSnapshot(listener: (snapshot: Snapshot) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    reload(gateway: Snapshot['gateway']) {
      snapshot = { ...snapshot, version: snapshot.version + 1, gateway }
      for (const listener of listeners) listener(snapshot)
    },
  }
}

interface TestParts {
  readonly agent: Agent
  readonly store: Store
  readonly ownership: ShardOwnership
  readonly clock: TestClock
  readonly log: ReturnType<typeof recordLog>['log']
  readonly snapshots: ReturnType<typeof testSnapshots>
  /** The folder of the store and of the configuration file. */
  readonly folder: string
}

function testRuntime({ agent, store, ownership, clock, log, snapshots, folder }: TestParts, options: TestGatewayOptions): Runtime {
  const bus = createEventBus({ clock, run: 'test' })
  const queued = (replies: readonly Waiting[]): void => options.queued?.(replies)
  const health = createHealthWatch({
    clock,
    store,
    bus,
    snapshot: snapshots.current,
    leases: () => ({ held: 1, wanted: 1 }),
    sandbox: () => undefined,
  })
  health.started()
  const history = new History({ clock, keyValue: store.keyValue('gateway:history'), node: null, log, waitedSecs: () => 0 })
  bus.observe(history.observe)
  const people = new People({
    store,
    ownership: { ownsAll: true },
    clock,
    events: bus,
    channels: () => snapshots.current().channels,
    operators: () => [],
  })
  const workspaces = new Map([...snapshots.current().registries.keys(), MAIN_AGENT].map((name) => [name, memoryWorkspace()]))
  return {
    version: '0.0.0',
    profile: 'test',
    dataDir: join(tmpdir(), 'sluice-test-without-data'),
    startedAtMs: clock.nowMs(),
    store,
    agent,
    admission: new Admission({ store: store.admissions, clock, events: bus, limitsOf: () => [] }),
    shares: new Shares({
      clock,
      events: bus,
      besides: (client) => people.besides(client),
      sharesOf: (client) => ({ ...sharesOf(snapshots.current().config, client), ...(client.standing !== 'operator' && options.shares) }),
    }),
    bus,
    people,
    approvals: new ApprovalRegistry({
      people,
      store: store.approvals,
      ownership,
      inbox: store.inbox,
      bus,
      clock,
      log,
      channels: () => snapshots.current().channels,
      features: () => snapshots.current().features,
      targets: () => options.approvalChannels ?? [],
      operators: () => [],
      actorName: (by) => actorName(by, store.devices),
      queued,
    }),
    clock,
    log,
    hideSecrets: options.hide ?? noSecrets,
    snapshot: snapshots.current,
    onSnapshot: snapshots.onSnapshot,
    workspaceOf: (agent) => workspaces.get(agent),
    files: new OwnedFiles({ store, dataDir: folder, clock, log }),
    health,
    history,
    procedures: new ProcedureFiles({ settings: () => options.sopSettings ?? NO_SOPS, keyValue: store.keyValue('sop'), clock }),
    sops: () => options.sops as Sops | undefined,
    delivery: {
      load: () => ({ messages: 0, replies: 0 }),
      ages: () => ({ messageSecs: 0, replySecs: 0 }),
      wake: options.wake ?? (() => {}),
      queued,
    },
    commands: new CommandRuns({
      snapshot: snapshots.current,
      pin: () => () => {},
      addToConfig: async () => {},
      setInConfig: async () => {},
      audit: async () => {},
      log,
    }),
    checks: async () => [],
    recentLog: new RecentLog(),
    settings: createSettings({ configFile: join(folder, 'config.toml'), dataDir: folder, features: options.features ?? [], env: {} }),
    vitals: () => idle(clock.nowMs()),
    backlog: () => readBacklog(store, clock.nowMs()),
  }
}

const NO_SOPS: LibrarySettings = { sources: [{ folder: '/nonexistent', isAgentWritable: false }], defaultMode: 'auto' }

const idle = (startedAtMs: number): Vitals => ({
  version: '0.0.0',
  profile: 'test',
  startedAtMs,
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
  channels: [],
  links: [],
  lastBackupMs: null,
  faults: { store: false, config: false, provider: false, backup: false },
  sandbox: null,
})

/** A request as the server makes it of a socket. */
function requestOf(path: string, { peer = '127.0.0.1', body, ...init }: TestRequest = {}): [Request, Connection] {
  const headers = new Headers(init.headers)
  if (!headers.has('host')) headers.set('host', HOST)
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0))
  const isWhole = 'length' in bytes
  if (body !== undefined && isWhole && !headers.has('content-length')) headers.set('content-length', String(bytes.length))
  const pieces = isWhole ? (bytes.length > 0 ? [Buffer.from(bytes)] : []) : bytes
  const incoming = Object.assign(Readable.from(pieces), {
    socket: { remoteAddress: peer },
    headers: Object.fromEntries(headers),
  })
  return [new Request(`http://${HOST}${path}`, { ...init, headers }), { incoming: incoming as never }]
}

/** Stores the same rows as the real agent: the turn, its messages, and the state of its key. */
function testAgent(
  store: Store,
  clock: TestClock,
  { turns, resumed }: { turns: TestTurn[]; resumed: string[] },
  reply: (request: TurnRequest) => string | Promise<string>,
): Agent {
  const end = async (id: string, request: TurnRequest, outcome: Pick<TurnEnd, 'status' | 'response'>): Promise<void> => {
    const said = (role: 'user' | 'assistant', text: string) => ({ role, content: [{ type: 'text' as const, text }] })
    const marked = markedFiles(outcome.response ?? '').map((path) => ({ path, ...(path.startsWith('refused') && { refusal: 'refused' }) }))
    await store.turns.finish({
      id,
      agent: request.session === null ? (request.agent ?? MAIN_AGENT) : agentOfSession(request.session),
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
      messages:
        outcome.response === null ? [] : [said('user', request.text), { ...said('assistant', outcome.response), ...fileNote({ marked }) }],
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
        return { id, text, model: 'echo', finishReason: 'stop', usage: { inputTokens: 1, outputTokens: 1, costUsd: 0 }, replies: [] }
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
        agent: session === null ? (request.agent ?? MAIN_AGENT) : agentOfSession(session),
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
    testModel: async () => {
      throw new AppError('unavailable', 'The test agent has no models')
    },
    resume: async () => 0,
    leave: async () => {},
    ensureResumed: async (id) => void resumed.push(id),
    abort: (id) => id === 'turn-running',
    requestAbort: async (id) => id === 'turn-running',
    look: async () => {},
    drain: async () => {},
    live: () => [],
    load: () => ({ running: 0, queued: 0, sessions: 0 }),
  }
}
