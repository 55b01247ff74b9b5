/** Builds the real channel of a feature folder by its path, because this package depends on no feature. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Channel, Feature, Host, Webhook } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'

const PACKAGES = join(import.meta.dirname, '../../../packages')

/** A channel with a webhook. */
export interface OpenChannel {
  readonly channel: Channel
  readonly webhook: Webhook
  /** Sets the clock of its host to any time, including an earlier one. */
  setClock(atMs: number): void
}

/** Builds the channel; throws if its configuration has no secret. */
export async function openChannel(folder: string, config: object, fetch?: Host['fetch']): Promise<OpenChannel> {
  const file = pathToFileURL(join(PACKAGES, folder, 'src/index.ts')).href
  const { default: feature } = (await import(file)) as { default: Feature }
  let nowMs = 0
  const host: Host = {
    ...testHost(fetch ? { fetch } : {}),
    // The log of a million refusals is not needed.
    log: { debug() {}, info() {}, warn() {}, error() {} },
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} },
  }
  const [channel] = feature.build(host, feature.section ? v.parse(feature.section.schema, config) : config).channels ?? []
  if (!channel?.webhook || channel.webhook.unsigned !== undefined)
    throw new Error(`${folder} does not verify requests with this configuration`)
  return {
    channel,
    webhook: channel.webhook,
    setClock(atMs) {
      nowMs = atMs
    },
  }
}
