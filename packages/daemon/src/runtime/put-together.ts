/** Puts the agent, approvals, limits, procedures and health together on an open store and its features. */
import { Admission, type Agent, createAgent, createTurnQueue, Shares } from '@sluice/agent'
import { ApprovalRegistry, createToolApprover } from '@sluice/approvals'
import { agentSection, approvalsSection, gatewaySection, limitsOf, operatorsOf, sharesOf } from '@sluice/config'
import { type Clients, createClients, People, withMessage } from '@sluice/delivery'
import type { LaneQueue } from '@sluice/kit'
import { History, sopSettings } from '@sluice/runtime'
import { CommandRuns } from '@sluice/runtime/command-runs'
import { createHealthWatch, type HealthWatch } from '@sluice/runtime/health'
import { actorName, MAIN_AGENT } from '@sluice/sdk'
import { ProcedureFiles } from '@sluice/sop/procedure-files'
import type { InForce } from './in-force.ts'
import { LateDelivery } from './late-delivery.ts'
import type { Features } from './open-features.ts'
import type { Opened } from './opened.ts'
import { placeOf } from './place-of-message.ts'
import { readIdentity } from './read-identity.ts'
import type { RuntimeOptions } from './runtime-options.ts'

/** The open parts that the ones below are made of. */
export interface Base {
  readonly opened: Opened
  readonly features: Features
  readonly inForce: InForce
  readonly options: RuntimeOptions
}

export interface Parts {
  readonly clients: Clients
  /** The accounts that are linked. */
  readonly people: People
  /** The delivery queues; empty until deliveries have started. */
  readonly delivery: LateDelivery
  /** Turns and messages wait here; at most `[agent] max_concurrent_turns` run at once. */
  readonly lanes: LaneQueue
  readonly admission: Admission
  /** What each client holds at once. */
  readonly shares: Shares
  readonly approvals: ApprovalRegistry
  readonly agent: Agent
  /** The procedures on disk, for operators. */
  readonly procedures: ProcedureFiles
  /** The running commands of features. */
  readonly commands: CommandRuns
  readonly health: HealthWatch
  /** What happened in each hour. */
  readonly history: History
  /** Subscribers of each kind, for the vitals; the HTTP side counts them. */
  readonly subscribers: { sse: number; ws: number; dropped: number }
}

export function putTogether(base: Base): Parts {
  const { opened } = base
  const { clock, store, bus: events, config } = opened
  const delivery = new LateDelivery()
  const clients = createClients()
  const health = createHealth(base)
  const people = createPeople(base)
  const approvals = createApprovals(base, delivery, people)
  const lanes = createTurnQueue(clock, () => config().core(agentSection).max_concurrent_turns)
  const admission = new Admission({ store: store.admissions, clock, events, limitsOf: (client) => limitsOf(config(), client) })
  const shares = new Shares({
    clock,
    events,
    sharesOf: (client) => sharesOf(config(), client),
    besides: (client) => people.besides(client),
    running: () => lanes.used(),
  })
  return {
    clients,
    people,
    delivery,
    lanes,
    admission,
    shares,
    approvals,
    agent: createAgentOf(base, { approvals, lanes, admission, shares, clients, people }),
    procedures: new ProcedureFiles({ settings: () => sopSettings(config(), opened.dataDir), keyValue: store.keyValue('sop'), clock }),
    commands: createCommands(base),
    health,
    history: createHistory(base, delivery),
    subscribers: { sse: 0, ws: 0, dropped: 0 },
  }
}

function createHistory({ opened: { clock, store, bus, log } }: Base, delivery: LateDelivery): History {
  const history = new History({
    clock,
    keyValue: store.keyValue('gateway:history'),
    node: store.cluster?.node ?? null,
    log,
    waitedSecs() {
      const { messageSecs, replySecs } = delivery.ages()
      return Math.max(messageSecs, replySecs)
    },
  })
  bus.observe(history.observe)
  return history
}

function createHealth({ opened: { clock, store, bus, ownership }, features: { snapshot, lifecycle } }: Base): HealthWatch {
  return createHealthWatch({
    clock,
    store,
    bus,
    snapshot,
    leases: () => ownership.leases(),
    node: store.cluster?.node ?? null,
    clockOffsetMs: () => store.cluster?.seen().clockOffsetMs ?? null,
    sandbox: () => lifecycle.guards()?.sandbox.latest(),
  })
}

function createPeople({ opened: { store, ownership, clock, bus, config }, features: { snapshot } }: Base): People {
  const channels = () => snapshot().channels
  return new People({ store, ownership, clock, events: bus, channels, operators: (channel) => operatorsOf(config(), channel) })
}

function createApprovals({ opened, features: { snapshot } }: Base, delivery: LateDelivery, people: People): ApprovalRegistry {
  const { store, ownership, bus, clock, log, config } = opened
  return new ApprovalRegistry({
    store: store.approvals,
    ownership,
    notices: store.cluster?.notices,
    inbox: store.inbox,
    bus,
    clock,
    log: log.child('approvals'),
    channels: () => snapshot().channels,
    features: () => snapshot().features,
    targets: () => config().core(approvalsSection).channels,
    operators: (channel) => operatorsOf(config(), channel),
    people,
    actorName: (by) => actorName(by, store.devices),
    texts: () => config().core(gatewaySection).texts,
    queued: delivery.queued,
    reach: { outbox: store.outbox, hasOperator: () => hasOperator(opened) },
  })
}

function createAgentOf(
  { opened, features: { snapshot, lifecycle }, inForce, options }: Base,
  {
    approvals,
    lanes,
    admission,
    shares,
    clients,
    people,
  }: Pick<Parts, 'approvals' | 'lanes' | 'admission' | 'shares' | 'clients' | 'people'>,
): Agent {
  const { store, ownership, bus, clock, log, traces, config } = opened
  const askInChats = createToolApprover({
    approvals,
    inbox: {
      get: async (number) => {
        const entry = await store.inbox.get(number)
        return entry && withMessage(snapshot().channels, entry)
      },
    },
    run: store.sops.get,
    hasOperator: () => hasOperator(opened),
    timeoutSecs: () => config().core(approvalsSection).tool_timeout_secs,
    texts: () => config().core(gatewaySection).texts,
  })
  return createAgent({
    store,
    cluster: ownership.ownsAll ? undefined : store.cluster,
    ownership,
    lanes,
    pinRegistry: lifecycle.pin,
    events: bus,
    clock,
    log: log.child('agent'),
    config: (agent) => lifecycle.agents().get(agent),
    secrets: () => inForce.secrets,
    mintClient: clients.ofCaller,
    linked: people,
    admission,
    shares,
    placeOf: (turn) => placeOf(snapshot().channels, turn),
    identityOf: (agent) => {
      const now = lifecycle.agents().get(agent)
      return readIdentity({ dataDir: opened.dataDir, agent, workspace: now?.workspace, accepted: now?.agent.identity_sha256 }, log)
    },
    texts: () => config().core(gatewaySection).texts,
    recall: async (reader, text) => (await snapshot().service('recall')?.(reader, text)) ?? [],
    approve: options.approve ?? askInChats,
    within: traces.within,
  })
}

/** Whether an operator could answer on the dashboard. */
async function hasOperator({ config, clock, store }: Opened): Promise<boolean> {
  if (!config().core(gatewaySection).require_pairing) return true
  const nowMs = clock.nowMs()
  const devices = await store.devices.list()
  return devices.some(({ role, expiresAtMs }) => role === 'operator' && (expiresAtMs === null || expiresAtMs > nowMs))
}

const loadEdits = () => import('@sluice/config/edit')

function createCommands({ opened: { log }, features: { snapshot, lifecycle, services }, options }: Base): CommandRuns {
  return new CommandRuns({
    snapshot,
    pin: () => lifecycle.pin(MAIN_AGENT).release,
    addToConfig: async (addition) => (await loadEdits()).addToConfig(options, addition),
    setInConfig: async (values) => (await loadEdits()).setInConfig(options, values),
    audit: async (record) => services.audit?.(record),
    log: log.child('features'),
  })
}
