/** The streams behind a real port, with devices, an agent and a clock that a test controls. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { type Agent, type LimitedClient, Shares } from '@sluice/agent'
import type { ApprovalRegistry } from '@sluice/approvals'
import { openTestApprovals } from '@sluice/approvals/testing/test-approvals'
import { type ClientShares, type GatewayConfig, NO_SHARES } from '@sluice/config'
import { createClients } from '@sluice/delivery'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { createEventBus, type EventBus, noSecrets } from '@sluice/runtime'
import { testSnapshot } from '@sluice/runtime/testing/test-snapshot'
import { type DeviceRow, MAIN_AGENT, type Role, type SessionRow, sha256Hex } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { Hono } from 'hono'
import { createAuth } from '../../auth/auth.ts'
import { ConnectedPeers, clientPeer, ForwardingWatch } from '../../middleware/client-peer.ts'
import { createProblemHandler } from '../../middleware/problems.ts'
import { createLimits } from '../../middleware/rate-limit.ts'
import { BodyBudget } from '../../request/body-budget.ts'
import type { HttpEnv } from '../../request/context.ts'
import type { SubscriberCounts } from '../connections.ts'
import { createStreams, type Streams } from '../streams.ts'
import { serveUpgrades } from '../upgrades.ts'

/** The tokens of two devices with the role operator and of one with the role client. */
export const TOKENS = { d1: 'token-of-d1', d2: 'token-of-d2', c1: 'token-of-c1' } as const
const ROLE_OF: Readonly<Record<string, Role>> = { d1: 'operator', d2: 'operator', c1: 'client' }

export interface StreamServer extends AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly clock: TestClock
  readonly bus: EventBus
  readonly counts: SubscriberCounts
  readonly approvals: ApprovalRegistry
  readonly streams: Streams
  /** The messages that were logged as errors. */
  readonly errors: readonly string[]
  revoke(device: string): void
  /** Gives a device another token. */
  rotate(device: string, token: string): void
  /** Puts other settings into force, as a reload does. */
  reload(config: Partial<GatewayConfig>): void
}

export interface StreamServerOptions {
  readonly agent?: Pick<Agent, 'run'>
  readonly config?: Partial<GatewayConfig>
  readonly sessions?: readonly SessionRow[]
  /** The names of the configured agents besides main. */
  readonly agents?: readonly string[]
  readonly keptMax?: number
  /** The shares of a device with the role client. Default: it has none. */
  readonly shares?: Partial<ClientShares>
  /** The WebSockets of features. */
  readonly sockets?: Snapshot['sockets']
  /** Delays the lookup of a device. */
  readonly lookUp?: () => Promise<void>
}

export async function startStreamServer(options: StreamServerOptions = {}): Promise<StreamServer> {
  const { agent, agents = [], config, sessions = [], keptMax, sockets = [], lookUp } = options
  const clock = testClock()
  const host = testHost({ clock })
  const bus = createEventBus({ clock, run: 'r1', ...(keptMax ? { keptMax } : {}) })
  const devices = createDevices(lookUp)
  const gateway = { require_pairing: true, max_subscribers: 100, allowed_hosts: [], trust_forwarded_headers: false, ...config }
  const { registry } = testSnapshot()
  const registries = new Map([MAIN_AGENT, ...agents].map((name) => [name, registry]))
  const snapshot = testSnapshot({ gateway: gateway as unknown as GatewayConfig, registry, registries, sockets })
  const listeners = new Set<(snapshot: Snapshot) => void>()
  const kept = openTestApprovals({ bus, clock, log: host.log })
  const { approvals } = kept
  await kept.start()
  const { outbox, counters } = kept.store
  const store = { devices, sessions: { get: async (id: string) => sessions.find((row) => row.id === id) }, outbox, counters }
  const delivery = { queued: () => {} }
  const runtime = {
    clock,
    bus,
    log: host.log,
    store,
    agent,
    approvals,
    delivery,
    shares: new Shares({
      clock,
      events: bus,
      sharesOf: ({ standing }) => (standing === 'operator' ? NO_SHARES : { ...NO_SHARES, ...options.shares }),
    }),
    people: { principal: (client: LimitedClient) => client },
    hideSecrets: noSecrets,
    snapshot: () => snapshot,
    onSnapshot: (listener: (snapshot: Snapshot) => void) => listeners.add(listener),
  } as unknown as Runtime
  const auth = createAuth(runtime)
  const counts = { sse: 0, ws: 0, dropped: 0 }
  const streams = createStreams(runtime, auth, counts)

  const app = new Hono<HttpEnv>()
  const forwarding = new ForwardingWatch(host.log)
  const parts = {
    runtime,
    snapshot,
    auth,
    clients: createClients(),
    limits: createLimits(runtime.store.counters),
    budget: new BodyBudget(),
    forwarding,
    peers: new ConnectedPeers(snapshot.gateway, forwarding),
  }
  app.onError(createProblemHandler(runtime))
  app.use(clientPeer(parts.peers))
  for (const { doc, steps } of streams.endpoints(parts)) app.on(doc.method, [doc.path], ...steps)
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }) as RequestListener)
  serveUpgrades(server, app.fetch)
  const transports = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    transports.add(socket)
    socket.once('close', () => transports.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    clock,
    bus,
    counts,
    approvals,
    streams,
    get errors() {
      return host.logs.filter(({ level }) => level === 'error').map(({ message }) => message)
    },
    revoke: devices.forget,
    rotate: devices.rotate,
    reload(changed) {
      Object.assign(gateway, changed)
      for (const listener of listeners) listener(snapshot)
      bus.emit({ type: 'config_reloaded', sections: ['gateway'], rebuilt: [] })
    },
    async [Symbol.asyncDispose]() {
      streams.closeAll('the test is over')
      const closed = new Promise((resolve) => server.close(resolve))
      for (const transport of transports) transport.destroy()
      await closed
      await kept.close()
    },
  }
}

function createDevices(lookUp = async () => {}) {
  const byHash = new Map(
    Object.entries(TOKENS).map(([id, token]) => [sha256Hex(token), { id, role: ROLE_OF[id], expiresAtMs: null } as DeviceRow]),
  )
  let version = 1
  const forget = (id: string): void => {
    for (const [hash, device] of byHash) if (device.id === id) byHash.delete(hash)
    version += 1
  }
  return {
    version: () => version,
    findByTokenHash: (hash: string) => lookUp().then(() => byHash.get(hash)),
    touch: async () => {},
    forget,
    rotate(id: string, token: string): void {
      forget(id)
      byHash.set(sha256Hex(token), { id, role: ROLE_OF[id], expiresAtMs: null } as DeviceRow)
    },
  }
}
