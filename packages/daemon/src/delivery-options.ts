/** The collaborators that the runtime gives to durable delivery. */
import { agentsOfChats, deliverySection, gatewaySection, loopTurnsOf, operatorsOf, pacingOf, resetOf, roomsOf } from '@sluice/config'
import type { DeliveryOptions } from '@sluice/delivery'
import { logDelivery } from './log-activity.ts'
import type { Procedures } from './procedures.ts'
import type { OpenRuntime } from './runtime/open-runtime.ts'

export const deliveryOptions = (runtime: OpenRuntime, procedures: Procedures, restoredAtMs: number | undefined): DeliveryOptions => ({
  restoredAtMs,
  store: runtime.store,
  ownership: runtime.ownership,
  features: {
    onChange: runtime.onSnapshot,
    channels: () => runtime.snapshot().channels,
    config: () => runtime.config().core(deliverySection),
    texts: () => runtime.config().core(gatewaySection).texts,
    agentOf: agentsOfChats(runtime.config),
    models: (agent) => runtime.snapshot().registries.get(agent)?.models.labels.map(labelOf) ?? [],
    reset: (channel, agent) => resetOf(runtime.config(), channel, agent),
    pacing: (channel) => pacingOf(runtime.config(), channel),
    rooms: (channel) => roomsOf(runtime.config(), channel),
    workspace: runtime.workspaceOf,
    endCommands: async (session) => runtime.snapshot().service('endCommands')?.(session),
    transcribe: () => runtime.snapshot().service('transcribe'),
    procedures: runtime.sops,
  },
  turns: { agent: runtime.agent, lanes: runtime.lanes, clients: runtime.clients },
  approvals: runtime.approvals,
  people: runtime.people,
  limits: {
    admission: runtime.admission,
    shares: runtime.shares,
    loopTurns: (channel) => loopTurnsOf(runtime.config(), channel),
    operators: (channel) => operatorsOf(runtime.config(), channel),
  },
  telemetry: {
    observe(observation) {
      logDelivery(runtime.log, observation)
      runtime.snapshot().observe(observation)
    },
    traces: () => runtime.snapshot().wantsTraces,
    within: runtime.traces.within,
  },
  events: runtime.bus,
  clock: runtime.clock,
  log: runtime.log.child('delivery'),
  scrub: runtime.scrub,
  async changedElsewhere(change) {
    await runtime.approvals.look(change)
    await runtime.agent.look(change)
    await procedures.look(change)
  },
})

const labelOf = ({ provider, model }: { readonly provider: string; readonly model: string }): string => `${provider}:${model}`
