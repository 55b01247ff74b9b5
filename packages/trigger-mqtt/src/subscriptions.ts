/** Keeps the broker's subscriptions those that are wanted, across restarts of either side. */
import type { KeyValue, Logger } from '@sluice/sdk'
import type { MqttClient } from 'mqtt'
import { widestFilters } from './widest-filters.ts'

export interface SubscriptionParts {
  readonly keyValue: KeyValue
  readonly log: Logger
  readonly qos: 0 | 1
  wanted(): readonly string[]
}

/** What the broker may know of; it never knows more. */
const KEY = 'subscribed'
/** The broker's answer to a filter it does not accept. */
const REFUSED = 128

export const forgetSubscriptions = (keyValue: KeyValue): Promise<void> => keyValue.delete(KEY)

/**
 * Of one connection. Each call makes the broker's subscriptions those that are wanted at that moment, one call after the other;
 * it rejects where the connection ends or the store fails.
 */
export function createSubscriptions(client: MqttClient, { keyValue, log, qos, wanted }: SubscriptionParts): () => Promise<void> {
  const made = new Set<string>()
  let last = Promise.resolve()

  const add = async (filters: readonly string[]): Promise<void> => {
    const granted = await subscribe(client, filters, qos)
    for (const [index, filter] of filters.entries()) {
      const level = granted[index]
      if (level === REFUSED) log.error('the broker refuses a subscription', { topic: filter })
      else made.add(filter)
      if (level === 0 && qos > 0) log.warn('the broker grants QoS 0 only: messages may get lost', { topic: filter })
    }
  }
  const update = async (): Promise<void> => {
    const filters = new Set(widestFilters(wanted()))
    const known = new Set(filtersIn(await keyValue.get(KEY)))
    const missing = [...filters].filter((filter) => !made.has(filter))
    const obsolete = [...known].filter((filter) => !filters.has(filter))
    if ([...filters].some((filter) => !known.has(filter))) await keyValue.set(KEY, [...filters, ...obsolete])
    if (missing.length > 0) await add(missing)
    if (obsolete.length === 0) return
    await client.unsubscribeAsync(obsolete)
    for (const filter of obsolete) made.delete(filter)
    await keyValue.set(KEY, [...filters])
  }

  return () => {
    last = last.then(update)
    return last
  }
}

/** The granted QoS of each filter, or `REFUSED`. */
const subscribe = (client: MqttClient, filters: readonly string[], qos: 0 | 1): Promise<readonly unknown[]> =>
  new Promise((resolve, reject) => {
    client.subscribe([...filters], { qos }, (error, _requested, answer) => {
      if (answer) resolve(answer.granted)
      else reject(error ?? new Error('the broker did not answer a subscription'))
    })
  })

const filtersIn = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((filter) => typeof filter === 'string') : [])
