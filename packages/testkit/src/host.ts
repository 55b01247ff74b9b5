/** The hosts a feature is tested with: one that keeps everything in memory and one that throws on every call. */
import {
  type CallingAgent,
  type Host,
  type LogFields,
  type Logger,
  MAIN_AGENT,
  type Policy,
  type Services,
  type SluiceEvent,
  type Workspace,
} from '@sluice/sdk'
import { type TestClock, testClock } from './clock.ts'
import { memoryKeyValue, memorySecrets } from './memory-store.ts'
import { memoryWorkspace } from './memory-workspace.ts'

/** A line that was logged. */
export interface LogLine {
  readonly level: keyof Logger
  readonly message: string
  readonly fields: LogFields
}

/** A host that records calls and keeps its state in memory. */
export interface TestHost extends Host {
  /** The agent that makes calls in a test: spread it into a `ToolContext`. */
  readonly by: CallingAgent
  readonly clock: TestClock
  /** The log lines, in order. */
  readonly logs: readonly LogLine[]
  /** The emitted events, in order. */
  readonly emitted: readonly SluiceEvent[]
  /** The reasons passed to `rebuild`, in order. */
  readonly rebuilds: readonly string[]
  /** The reasons passed to `refresh`, in order. */
  readonly refreshes: readonly string[]
  /** Moves the clock; see `TestClock.advance`. */
  advance(ms: number): Promise<void>
}

/** Members that replace the defaults of a test host. */
export interface TestHostOverrides extends Partial<Omit<Host, 'clock' | 'service' | 'workspaces'>> {
  readonly clock?: TestClock
  /** Limits of the agent that makes calls. */
  readonly policy?: Partial<Policy>
  readonly workspace?: Workspace
  readonly services?: Partial<Services>
}

/** A policy that allows every command and never asks for approval. */
export const openPolicy: Policy = {
  level: 'full',
  allowed_commands: ['*'],
  forbidden_paths: [],
  auto_approve: [],
  always_ask: [],
  ask_after_untrusted: false,
}

const notGiven = (member: string) => async (): Promise<never> => {
  throw new Error(`this test host was given no ${member}`)
}

/**
 * Creates a host that keeps everything in memory, with a clock that moves only when a test advances it. `fetch`, `publicFetch`,
 * `publicAddresses`, `spawn` and `companion` reject unless the caller gives them.
 */
export function testHost({ policy, workspace = memoryWorkspace(), services = {}, ...overrides }: TestHostOverrides = {}): TestHost {
  const logs: LogLine[] = []
  const emitted: SluiceEvent[] = []
  const rebuilds: string[] = []
  const refreshes: string[] = []
  const clock = overrides.clock ?? testClock()
  const record =
    (level: keyof Logger) =>
    (message: string, fields: LogFields = {}) => {
      logs.push({ level, message, fields })
    }
  return {
    feature: 'x-test',
    log: { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') },
    fetch: notGiven('fetch'),
    publicFetch: notGiven('publicFetch'),
    publicAddresses: notGiven('publicAddresses'),
    spawn: notGiven('spawn'),
    confines: () => true,
    sandboxChosen: async () => {},
    companion: notGiven('companion'),
    keyValue: memoryKeyValue(),
    secrets: memorySecrets(),
    events: { emit: (event) => void emitted.push(event) },
    workspaces: [workspace.root],
    workspace,
    dataDir: '/data',
    rebuild: (reason) => void rebuilds.push(reason),
    refresh: (reason) => void refreshes.push(reason),
    ...overrides,
    by: { agent: MAIN_AGENT, policy: { ...openPolicy, ...policy }, workspace },
    service: (name) => services[name],
    clock,
    logs,
    emitted,
    rebuilds,
    refreshes,
    advance: (ms) => clock.advance(ms),
  }
}

/** Returns a function that throws when called; each of its members is such a function too. */
const forbidden = (path: string): never =>
  new Proxy(() => undefined, {
    get: (_target, member) => forbidden(`${path}.${String(member)}`),
    apply: () => {
      throw new Error(`${path}() was called while calls are forbidden`)
    },
  }) as never

/**
 * Creates the host for the rule "build does no I/O": code may keep its members, as `Feature.build` is allowed to, and read
 * plain data, but every call throws at any depth.
 */
export const throwingHost = (): Host => ({
  feature: 'x-test',
  dataDir: '/data',
  log: forbidden('host.log'),
  clock: forbidden('host.clock'),
  fetch: forbidden('host.fetch'),
  publicFetch: forbidden('host.publicFetch'),
  publicAddresses: forbidden('host.publicAddresses'),
  spawn: forbidden('host.spawn'),
  confines: forbidden('host.confines'),
  sandboxChosen: forbidden('host.sandboxChosen'),
  companion: forbidden('host.companion'),
  keyValue: forbidden('host.keyValue'),
  secrets: forbidden('host.secrets'),
  events: forbidden('host.events'),
  workspaces: ['/workspace'],
  workspace: forbidden('host.workspace'),
  rebuild: forbidden('host.rebuild'),
  refresh: forbidden('host.refresh'),
  service: forbidden('host.service'),
})
