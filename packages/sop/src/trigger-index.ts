/** Finds the procedures that an event starts, by an index: the other procedures cost nothing. */
import type { SopEvent, TriggerKind } from '@sluice/sdk'
import { forEachInBatches } from './batches.ts'
import { type Condition, EventPayload, parseCondition, unmet } from './condition.ts'
import { type SopDefinition, type SopTrigger, topicOf } from './definition.ts'
import { TopicFilters } from './topic-filter.ts'

/** The part of an event that triggers look at. */
export type EventContent = Pick<SopEvent, 'source' | 'topic' | 'payload'>

/** A trigger with its procedure and its parsed condition. */
export interface IndexedTrigger {
  readonly definition: SopDefinition
  readonly trigger: SopTrigger
  readonly condition: Condition | null
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

  /** Returns the procedures that an event starts, each once, sorted by name. */
  match({ source, topic, payload }: EventContent): SopDefinition[] {
    const read = new EventPayload(payload)
    const met = this.triggersFor(source, topic).filter(({ condition }) => condition === null || unmet(condition, read) === undefined)
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

  /** Returns the topics of a kind as the triggers spell them, each once and sorted. */
  topics(kind: TriggerKind): readonly string[] {
    return [...this.#topics[kind]].sort()
  }

  #add(definition: SopDefinition, conditions: Conditions): void {
    for (const trigger of definition.triggers) this.#addTrigger(definition, trigger, conditions)
  }

  #addTrigger(definition: SopDefinition, trigger: SopTrigger, conditions: Conditions): void {
    const text = 'condition' in trigger ? trigger.condition : null
    const indexed = { definition, trigger, condition: text === null ? null : conditions.of(text) }
    const topic = topicOf(definition, trigger)
    this.#topics[trigger.type].add(topic)
    if (trigger.type === 'mqtt' && /[+#]/.test(topic)) this.#filters.add(topic, indexed)
    else append(this.#exact[trigger.type], topic, indexed)
  }
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
