/** The parts of the runtime that durable delivery works with. */
import { createAnswerRunner } from '@sluice/approvals'
import { deliverySection } from '@sluice/config'
import type { DeliveryDeps } from '@sluice/delivery'
import type { OpenRuntime } from '@sluice/runtime'
import { logDelivery } from './log-activity.ts'
import type { Procedures } from './procedures.ts'

export const deliveryDeps = (runtime: OpenRuntime, procedures: Procedures): DeliveryDeps => ({
  store: runtime.store,
  agent: runtime.agent,
  clients: runtime.clients,
  events: runtime.bus,
  approvals: runtime.approvals,
  createAnswerRunner: (options) => createAnswerRunner({ ...options, approvals: runtime.approvals }),
  async changedElsewhere() {
    await runtime.approvals.look()
    await procedures.look()
  },
  clock: runtime.clock,
  log: runtime.log.child('delivery'),
  generation: () => runtime.snapshot().version,
  channels: () => runtime.snapshot().channels,
  config: () => runtime.config().core(deliverySection),
  lanes: runtime.lanes,
  observe(observation) {
    logDelivery(runtime.log, observation)
    runtime.snapshot().observe(observation)
  },
  traces: () => runtime.snapshot().wantsTraces,
  within: runtime.traces.within,
  workspace: () => runtime.guards().workspace,
  scrub: runtime.scrub,
  sops: runtime.sops,
  transcribe: () => runtime.snapshot().service('transcribe'),
})
