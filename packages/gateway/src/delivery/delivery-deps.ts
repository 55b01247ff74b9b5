/** What durable delivery takes from the runtime. */
import { agentSection } from '@sluice/agent'
import { deliverySection } from '../config/core-sections.ts'
import { logDelivery } from '../log-activity.ts'
import type { OpenRuntime } from '../open-runtime.ts'
import type { Procedures } from '../procedures.ts'
import type { DeliveryDeps } from './channels.ts'

export const deliveryDeps = (runtime: OpenRuntime, procedures: Pick<Procedures, 'look'>): DeliveryDeps => ({
  store: runtime.store,
  agent: runtime.agent,
  clients: runtime.clients,
  events: runtime.bus,
  approvals: runtime.approvals,
  async changedElsewhere() {
    await runtime.approvals.look()
    await procedures.look()
  },
  clock: runtime.clock,
  log: runtime.log.child('delivery'),
  generation: () => runtime.live().generation,
  channels: () => runtime.live().channels,
  config: () => runtime.config().core(deliverySection),
  turnsMax: () => runtime.config().core(agentSection).max_concurrent_turns,
  observe(observation) {
    logDelivery(runtime.log, observation)
    runtime.live().observe(observation)
  },
  traces: () => runtime.live().traces,
  within: runtime.traces.within,
  workspace: () => runtime.guards().workspace,
  scrub: runtime.scrub,
  sops: runtime.sops,
  transcribe: () => runtime.lifecycle.current().service('transcribe'),
})
