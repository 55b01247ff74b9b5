/** What `sluice doctor` says about channels: who may send messages, and what was given up. */
import { configuredChannels } from '../features/configured-channels.ts'
import type { OpenRuntime } from '../open-runtime.ts'
import { type Check, fail, ok, warn } from './check.ts'

export function checkWebhooks(runtime: OpenRuntime): Check[] {
  const webhooks = configuredChannels(runtime.snapshot()).ready.flatMap(({ channel: { name, webhook }, section }) =>
    webhook ? [{ name, section, missing: webhook.unsigned }] : [],
  )
  const unsigned = webhooks.flatMap(({ name, section, missing }) => {
    if (missing === undefined) return []
    const detail = `${name}: [${section}] ${missing} is not set, so anybody can post as the provider`
    return [fail('webhooks', detail, `sluice config set ${section}.${missing}`)]
  })
  if (unsigned.length > 0) return unsigned
  const names = webhooks.map(({ name }) => name).join(', ')
  return [ok('webhooks', names === '' ? 'no channel with a webhook is configured' : `${names}: every request has to be proved`)]
}

/** Nothing to say of channels that have what they need. */
export const checkChannels = (runtime: OpenRuntime): Check[] =>
  configuredChannels(runtime.snapshot()).ready.flatMap(({ channel: { name, missingConfig }, section }) =>
    missingConfig === undefined ? [] : [fail('channels', `${name} cannot work without ${missingConfig}`, `set it in [${section}]`)],
  )

export async function checkDeliveries({ store: { inbox, outbox } }: Pick<OpenRuntime, 'store'>): Promise<Check[]> {
  const [came, goes] = await Promise.all([inbox.counts(), outbox.counts()])
  const checks: Check[] = []
  if (came.dead > 0) checks.push(warn('deliveries', `messages given up: ${came.dead}`, "see 'sluice inbox dead'"))
  if (goes.dead + goes.ambiguous > 0) {
    const detail = `replies given up: ${goes.dead}, perhaps sent: ${goes.ambiguous}`
    checks.push(warn('deliveries', detail, "see 'sluice outbox dead'"))
  }
  return checks.length > 0 ? checks : [ok('deliveries', 'nothing was given up')]
}
