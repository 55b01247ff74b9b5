/** The collaborators that the runtime gives to durable delivery. */
import { agentOfChat, deliverySection } from '@sluice/config'
import type { DeliveryOptions } from '@sluice/delivery'
import type { OpenRuntime } from '@sluice/runtime'
import { logDelivery } from './log-activity.ts'
import type { Procedures } from './procedures.ts'

export const deliveryOptions = (runtime: OpenRuntime, procedures: Procedures): DeliveryOptions => ({
  store: runtime.store,
  ownership: runtime.ownership,
  features: {
    onChange: runtime.onSnapshot,
    channels: () => runtime.snapshot().channels,
    config: () => runtime.config().core(deliverySection),
    agentOf: (chat) => agentOfChat(runtime.config(), chat),
    workspace: (agent) => runtime.lifecycle.agents().get(agent)?.workspace,
    transcribe: () => runtime.snapshot().service('transcribe'),
    procedures: runtime.sops,
  },
  turns: { agent: runtime.agent, lanes: runtime.lanes, clients: runtime.clients },
  approvals: runtime.approvals,
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
