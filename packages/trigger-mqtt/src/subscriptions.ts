/** Keeps the subscriptions at the broker equal to the wanted topics, also after a restart of the daemon or the broker. */
import { SerialQueue } from '@sluice/kit'
import type { KeyValue, Logger } from '@sluice/sdk'
import type { MqttClient } from 'mqtt'
import { widestFilters } from './widest-filters.ts'

/** Holds every topic filter that the broker may have a subscription for. */
const KEY = 'subscribed'
/** The return code of SUBACK for a refused filter. */
const REFUSED = 128
const UPDATES_MAX = 1000

export const forgetSubscriptions = (keyValue: KeyValue): Promise<void> => keyValue.delete(KEY)

export const hasSubscriptions = async (keyValue: KeyValue): Promise<boolean> => filtersIn(await keyValue.get(KEY)).length > 0

/** The subscriptions of one connection. */
export class Subscriptions {
  readonly #client: MqttClient
  readonly #keyValue: KeyValue
  readonly #log: Logger
  readonly #qos: 0 | 1
  readonly #wanted: () => readonly string[]
  /** Filters that this connection has subscribed to. */
  readonly #made = new Set<string>()
  readonly #updates = new SerialQueue({ name: 'the subscriptions of the MQTT broker', tasksMax: UPDATES_MAX })

  constructor(client: MqttClient, keyValue: KeyValue, log: Logger, qos: 0 | 1, wanted: () => readonly string[]) {
    this.#client = client
    this.#keyValue = keyValue
    this.#log = log
    this.#qos = qos
    this.#wanted = wanted
  }

  /**
   * Subscribes to the topics that are wanted now, and unsubscribes from all others. Rejects if the connection ends or the
   * store fails.
   */
  update(): Promise<void> {
    return this.#updates.run(() => this.#updateNow())
  }

  async #updateNow(): Promise<void> {
    const filters = new Set(widestFilters(this.#wanted()))
    const known = new Set(filtersIn(await this.#keyValue.get(KEY)))
    const missing = [...filters].filter((filter) => !this.#made.has(filter))
    const obsolete = [...known].filter((filter) => !filters.has(filter))
    if ([...filters].some((filter) => !known.has(filter))) await this.#keyValue.set(KEY, [...filters, ...obsolete])
    if (missing.length > 0) await this.#add(missing)
    if (obsolete.length === 0) return
    await this.#client.unsubscribeAsync(obsolete)
    for (const filter of obsolete) this.#made.delete(filter)
    await this.#keyValue.set(KEY, [...filters])
  }

  async #add(filters: readonly string[]): Promise<void> {
    const granted = await this.#subscribe(filters)
    for (const [index, filter] of filters.entries()) {
      const level = granted[index]
      if (level === REFUSED) this.#log.error('MQTT broker refused a subscription', { topic: filter })
      else this.#made.add(filter)
      if (level === 0 && this.#qos > 0) this.#log.warn('MQTT broker grants only QoS 0, messages may be lost', { topic: filter })
    }
  }

  /** Returns the granted QoS of each filter, or `REFUSED`. */
  #subscribe(filters: readonly string[]): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      this.#client.subscribe([...filters], { qos: this.#qos }, (error, _requested, answer) => {
        if (answer) resolve(answer.granted)
        else reject(error ?? new Error('the broker did not answer a subscription'))
      })
    })
  }
}

const filtersIn = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((filter) => typeof filter === 'string') : [])
