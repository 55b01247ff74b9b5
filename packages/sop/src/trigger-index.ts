/** Which procedures an event is for (§2.4): indexed, so that those it is not for cost nothing. */
import type { SopEvent, TriggerKind } from '@sluice/sdk'
import { type Condition, parseCondition, unmet } from './condition.ts'
import type { SopDefinition, SopTrigger } from './definition.ts'
import { EventPayload } from './event-payload.ts'
import { inTurns } from './in-turns.ts'
import { TopicFilters } from './topic-filter.ts'

export interface IndexedTrigger {
  readonly definition: SopDefinition
  readonly trigger: SopTrigger
  readonly condition: Condition | null
}

/** Definitions that are added before anything else has a turn. */
const ADDED_AT_ONCE = 200
const NONE: readonly IndexedTrigger[] = []

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

  /** Of definitions that loading has accepted. */
  constructor(definitions: Iterable<SopDefinition>) {
    const conditions = new Conditions()
    for (const definition of definitions) this.#add(definition, conditions)
  }

  /** As the constructor, holding nothing up however many there are. */
  static async of(definitions: Iterable<SopDefinition>): Promise<TriggerIndex> {
    const index = new TriggerIndex([])
    const conditions = new Conditions()
    await inTurns(definitions, ADDED_AT_ONCE, (definition) => index.#add(definition, conditions))
    return index
  }

  /** Those an event starts, each once, by name. */
  match({ source, topic, payload }: Pick<SopEvent, 'source' | 'topic' | 'payload'>): SopDefinition[] {
    const read = new EventPayload(payload)
    const met = this.triggersFor(source, topic).filter(({ condition }) => condition === null || unmet(condition, read) === undefined)
    const found = met.map(({ definition }) => definition)
    return found.length < 2 ? found : [...new Set(found)].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  matches(source: TriggerKind, topic: string): boolean {
    return this.triggersFor(source, topic).length > 0
  }

  /** Those whose topic fits, whatever their condition says. */
  triggersFor(source: TriggerKind, topic: string): readonly IndexedTrigger[] {
    const exact = this.#exact[source].get(topic) ?? NONE
    if (source !== 'mqtt') return exact
    const filtered = this.#filters.match(topic)
    return exact.length === 0 ? filtered : [...exact, ...filtered]
  }

  /** As they are written, each once, sorted. */
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

/** Many procedures ask the same: one object for all of them is one that is at hand. */
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

/** What the topic of an event must be. */
export function topicOf({ name }: Pick<SopDefinition, 'name'>, trigger: SopTrigger): string {
  switch (trigger.type) {
    case 'manual':
      return name
    case 'webhook':
      return trigger.path
    case 'cron':
      return trigger.expression
    case 'mqtt':
      return trigger.topic
    case 'peripheral':
      return `${trigger.board}/${trigger.signal}`
  }
}

function append<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key)
  if (values) values.push(value)
  else map.set(key, [value])
}
