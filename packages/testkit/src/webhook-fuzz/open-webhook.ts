/** Builds the real channel of a feature for the fuzzer. */
import type { Feature, Host, Webhook } from '@sluice/sdk'
import * as v from 'valibot'
import { testHost } from '../host.ts'

export interface OpenWebhook {
  readonly webhook: Webhook
  /** Sets the clock of its host to any time, including an earlier one. */
  setClock(atMs: number): void
}

/** Builds the channel; throws if its configuration has no secret. */
export function openWebhook(feature: Feature, config: object, fetch?: Host['fetch']): OpenWebhook {
  let nowMs = 0
  const host: Host = {
    ...testHost(fetch ? { fetch } : {}),
    // The log of a million refusals is not needed.
    log: { debug() {}, info() {}, warn() {}, error() {} },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} },
  }
  const [channel] = feature.build(host, feature.section ? v.parse(feature.section.schema, config) : config).channels ?? []
  if (!channel?.webhook || channel.webhook.unsigned !== undefined)
    throw new Error(`${feature.id} does not verify requests with this configuration`)
  return {
    webhook: channel.webhook,
    setClock(atMs) {
      nowMs = atMs
    },
  }
}
