/** Finds the procedures that an event starts, by an index: the other procedures cost nothing. */
import { forEachInBatches } from '@sluice/kit'
import {
  authKey,
  isAtLeast,
  isTestEvent,
  lowestStanding,
  type SopEvent,
  type TriggerKind,
  type TriggerWebhook,
  type WebhookAuth,
} from '@sluice/sdk'

import { type Condition, CREDENTIAL_HEADERS, EventPayload, parseCondition, unmet } from './condition.ts'
import { roleOf, type SopDefinition, type SopTrigger, topicOf } from './definition.ts'
import { TopicFilters } from './topic-filter.ts'

/** The part of an event that triggers look at. */
export type EventContent = Pick<SopEvent, 'source' | 'topic' | 'payload' | 'headers' | 'standing'>

/** A trigger with its procedure and its parsed conditions. */
export interface IndexedTrigger {
  readonly definition: SopDefinition
  readonly trigger: SopTrigger
  readonly conditions: readonly Condition[]
}

/** The number of definitions added before the event loop goes on. */
const BATCH_SIZE = 200
const NONE: readonly IndexedTrigger[] = []

/** Immutable; a reload builds a new index. */
export class TriggerIndex {
  readonly #exact: Readonly<Record<TriggerKind, Map<string, IndexedTrigger[]>>> = {
    manual: new Map(),
    webhook: new Map(),
    cron: new Map(),
    mqtt: new Map(),
    peripheral: new Map(),
  }
  readonly #filters = new TopicFilters<IndexedTrigger>()
  readonly #topics: Readonly<Record<TriggerKind, Set<string>>> = {
    manual: new Set(),
    webhook: new Set(),
    cron: new Set(),
    mqtt: new Set(),
    peripheral: new Set(),
  }

  /** The definitions must be valid, as loading returns them. */
  constructor(definitions: Iterable<SopDefinition>) {
    const conditions = new Conditions()
    for (const definition of definitions) this.#add(definition, conditions)
  }

  /** Like the constructor, without blocking the event loop when there are many definitions. */
  static async of(definitions: Iterable<SopDefinition>): Promise<TriggerIndex> {
    const index = new TriggerIndex([])
    const conditions = new Conditions()
    await forEachInBatches(definitions, BATCH_SIZE, (definition) => index.#add(definition, conditions))
    return index
  }

  /** Returns the procedures that an event starts, each once, sorted by name. `verified` is described at `Sops.fire`. */
  match(event: EventContent, verified: readonly (WebhookAuth | undefined)[] = [undefined]): SopDefinition[] {
    const { source, topic, payload, headers } = event
    const read = new EventPayload(payload, headers)
    const keys = new Set(verified.map(authKey))
    const met = this.triggersFor(source, topic).filter(
      ({ trigger, conditions }) =>
        (trigger.type !== 'webhook' || keys.has(authKey(trigger.auth))) &&
        isOpenTo(trigger, event) &&
        !isTest({ trigger, conditions }, event) &&
        conditions.every((one) => unmet(one, read) === undefined),
    )
    const found = met.map(({ definition }) => definition)
    return found.length < 2 ? found : [...new Set(found)].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  matches(source: TriggerKind, topic: string): boolean {
    return this.triggersFor(source, topic).length > 0
  }

  /** Returns the triggers whose topic matches; conditions are ignored. */
  triggersFor(source: TriggerKind, topic: string): readonly IndexedTrigger[] {
    const exact = this.#exact[source].get(topic) ?? NONE
    if (source !== 'mqtt') return exact
    const filtered = this.#filters.match(topic)
    return exact.length === 0 ? filtered : [...exact, ...filtered]
  }

  /** Returns the distinct ways in which the triggers on a path take requests, without their secrets. */
  webhooks(path: string): readonly Omit<TriggerWebhook, 'secrets'>[] {
    const byAuth = Map.groupBy(this.triggersFor('webhook', path), ({ trigger }) => authKey(authOf(trigger)))
    return [...byAuth.values()].map((triggers) => {
      const auth = triggers[0] && authOf(triggers[0].trigger)
      const sizes = triggers.map(({ trigger }) => ('bodyBytesMax' in trigger ? trigger.bodyBytesMax : undefined))
      const named = sizes.filter((bytes) => bytes !== undefined)
      const headers = new Set(triggers.flatMap(headersRead))
      const role = lowestStanding('operator', ...triggers.map(({ trigger }) => roleOf(trigger)))
      return { ...(auth && { auth }), role, ...(named.length > 0 && { bodyBytesMax: Math.max(...named) }), headers: [...headers] }
    })
  }

  /** Returns the topics of a kind as the triggers spell them, each once and sorted. */
  topics(kind: TriggerKind): readonly string[] {
    return [...this.#topics[kind]].sort()
  }

  #add(definition: SopDefinition, conditions: Conditions): void {
    for (const trigger of definition.triggers) this.#addTrigger(definition, trigger, conditions)
  }

  #addTrigger(definition: SopDefinition, trigger: SopTrigger, conditions: Conditions): void {
    const written = 'condition' in trigger ? (trigger.condition ?? []) : []
    const texts = typeof written === 'string' ? [written] : written
    const indexed = { definition, trigger, conditions: texts.map((text) => conditions.of(text)) }
    const topic = topicOf(definition, trigger)
    this.#topics[trigger.type].add(topic)
    if (trigger.type === 'mqtt' && /[+#]/.test(topic)) this.#filters.add(topic, indexed)
    else append(this.#exact[trigger.type], topic, indexed)
  }
}

/** Returns whether the cause of an event stands high enough for a trigger. A webhook with `auth` proves its sender, and other events have none. */
export const isOpenTo = (trigger: SopTrigger, { standing = 'unverified' }: Pick<EventContent, 'standing'>): boolean =>
  trigger.type !== 'webhook' || trigger.auth !== undefined || isAtLeast(standing, roleOf(trigger))

/** Returns whether the sender of a trigger's `auth` only tries the endpoint, and no condition of the trigger names that event. */
export function isTest({ trigger, conditions }: Pick<IndexedTrigger, 'trigger' | 'conditions'>, event: EventContent): boolean {
  if (trigger.type !== 'webhook' || !trigger.auth) return false
  const { scheme } = trigger.auth
  return isTestEvent(scheme, event) && !conditions.some(({ operator, value }) => operator === '==' && value === scheme.testEvent?.value)
}

const authOf = (trigger: SopTrigger): WebhookAuth | undefined => (trigger.type === 'webhook' ? trigger.auth : undefined)

/** Returns the headers that the conditions of a trigger and the inputs of its procedure's steps refer to. */
function headersRead({ definition, conditions }: IndexedTrigger): string[] {
  const inputs = definition.steps.map(({ input }) => JSON.stringify(input) ?? '').join()
  const ofInputs = [...inputs.matchAll(/"\$header\.([\w-]+)"/g)].map(([, name = '']) => name.toLowerCase())
  return [...conditions.flatMap(({ header }) => header ?? []), ...ofInputs.filter((name) => !CREDENTIAL_HEADERS.includes(name))]
}

/** Parses each distinct condition once: many procedures share one. */
class Conditions {
  readonly #known = new Map<string, Condition>()

  of(text: string): Condition {
    const known = this.#known.get(text)
    if (known) return known
    const parsed = parseCondition(text)
    this.#known.set(text, parsed)
    return parsed
  }
}

function append<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key)
  if (values) values.push(value)
  else map.set(key, [value])
}
