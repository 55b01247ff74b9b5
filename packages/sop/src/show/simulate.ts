/** Simulates an event: which triggers match and why the others do not, how each run would go, and its cost. Nothing is run. */
import { AppError, type SopStep, STANDINGS } from '@sluice/sdk'
import * as v from 'valibot'
import { EventPayload, type Unmet, unmet } from '../definition/condition.ts'
import { roleOf, type SopCondition, type SopDefinition, type SopTrigger, triggerText } from '../definition/definition.ts'
import { type EventContent, isOpenTo, isTest, TriggerIndex } from '../definition/trigger-index.ts'
import { gateBefore } from '../run/gates.ts'

export interface SimulatedTrigger {
  /** The trigger as lists show it, such as `webhook:/deploy`. */
  readonly trigger: string
  readonly condition: SopCondition
  readonly matches: boolean
  /** Why it does not match, as a sentence without its full stop; null when it matches. */
  readonly why: string | null
}

export interface SimulatedStep {
  readonly number: number
  readonly title: string
  /** Why the run waits for a person first; null when it goes on. */
  readonly waits: ReturnType<typeof gateBefore>
  /** A turn of the agent, one tool call without a model, or only the wait. */
  readonly by: 'agent' | 'tool' | 'nobody'
  /** The only tools the step may use; null: every tool. */
  readonly tools: readonly string[] | null
}

export interface SimulatedSop {
  readonly sop: string
  readonly triggers: readonly SimulatedTrigger[]
  /** True when a trigger matches and the procedure's own limits allow a run. */
  readonly starts: boolean
  /** Why no run starts although a trigger matches. */
  readonly held: string | null
  /** The steps as they go if everything is approved and completed, whether or not a run starts. */
  readonly steps: readonly SimulatedStep[]
  readonly cost: CostRange
}

/** The limits of the turns that carry out steps. */
export interface ModelLimits {
  /** Model calls of one turn. */
  readonly callsMax: number
  /** Tokens of all model calls of one turn. */
  readonly tokensMax: number
  /** US dollars for a million tokens. */
  readonly price?: { readonly input: number; readonly output: number }
}

export interface CostRange {
  readonly modelCalls: { readonly min: number; readonly max: number }
  /** US dollars; null when the price is unknown. */
  readonly usd: { readonly min: number; readonly max: number } | null
}

/** Pure: simulates the event for each definition. */
export function simulate(definitions: readonly SopDefinition[], event: EventContent, model: ModelLimits): SimulatedSop[] {
  const payload = new EventPayload(event.payload, event.headers)
  return definitions.map((definition) => {
    const triggers = definition.triggers.map((trigger) => simulateTrigger(definition, trigger, event, payload))
    const isMatched = triggers.some(({ matches }) => matches)
    const held = isMatched && definition.maxConcurrent === 0 ? 'its max_concurrent is 0' : null
    return {
      sop: definition.name,
      triggers,
      starts: isMatched && held === null,
      held,
      steps: definition.steps.map((step) => simulateStep(definition, step)),
      cost: estimateCost(definition, event.payload, model),
    }
  })
}

function simulateStep({ mode, priority }: SopDefinition, step: SopStep): SimulatedStep {
  const { number, title, kind, tools } = step
  const by = kind === 'checkpoint' ? 'nobody' : mode === 'deterministic' ? 'tool' : 'agent'
  return { number, title, waits: gateBefore(mode, priority, step), by, tools }
}

function simulateTrigger(definition: SopDefinition, trigger: SopTrigger, event: EventContent, payload: EventPayload): SimulatedTrigger {
  const condition = 'condition' in trigger ? trigger.condition : null
  const why = whyNot(definition, trigger, event, payload)
  return { trigger: triggerText(trigger), condition, matches: why === null, why }
}

function whyNot(definition: SopDefinition, trigger: SopTrigger, event: EventContent, payload: EventPayload): string | null {
  const { source, topic, standing } = event
  if (trigger.type !== source) return `the event is of kind ${source}`
  // An index of this trigger alone, so that the simulation matches exactly as the engine does.
  const [found] = new TriggerIndex([{ ...definition, triggers: [trigger] }]).triggersFor(source, topic)
  if (!found) return `the topic is ${JSON.stringify(topic)}`
  if (!isOpenTo(trigger, event)) return `it needs the role ${roleOf(trigger)}, and the event has the role ${standing}`
  if (isTest(found, event)) return 'the sender only tries the endpoint with this event; a condition that names the event takes it'
  const code = found.conditions.map((one) => unmet(one, payload)).find((reason) => reason !== undefined)
  return code ? UNMET_TEXT[code] : null
}

const UNMET_TEXT: Readonly<Record<Unmet, string>> = {
  no_payload: 'its condition does not hold: the event has no payload',
  no_header: 'its condition does not hold: the event has no such header',
  not_json: 'its condition does not hold: the payload is not JSON',
  not_there: 'its condition does not hold: the payload has no value at that path',
  not_comparable: 'its condition does not hold: the value in the payload cannot be compared',
  differs: 'its condition does not hold: the value in the payload does not fit the comparison',
}

const CHARS_PER_TOKEN = 4
const TOKENS_PER_PRICE = 1_000_000

/**
 * Estimates the cost of a run in which no step fails: at least the tokens of its own texts, at most the limits of its turns. Steps
 * in deterministic mode and checkpoints call no model.
 */
function estimateCost({ mode, steps }: SopDefinition, payload: string | null, { callsMax, tokensMax, price }: ModelLimits): CostRange {
  const turns = mode === 'deterministic' ? [] : steps.filter(({ kind }) => kind === 'execute')
  const chars = turns.reduce((sum, { title, body }) => sum + title.length + body.length + (payload?.length ?? 0), 0)
  const usdOf = (tokens: number, each: number) => (tokens * each) / TOKENS_PER_PRICE
  return {
    modelCalls: { min: turns.length, max: turns.length * callsMax },
    usd: price
      ? {
          min: usdOf(Math.min(chars / CHARS_PER_TOKEN, turns.length * tokensMax), price.input),
          max: usdOf(turns.length * tokensMax, Math.max(price.input, price.output)),
        }
      : null,
  }
}

const eventSchema = v.strictObject({
  source: v.picklist(['manual', 'webhook', 'cron', 'mqtt', 'peripheral']),
  topic: v.pipe(v.string(), v.minLength(1)),
  payload: v.optional(v.unknown(), null),
  headers: v.exactOptional(v.record(v.string(), v.string())),
  standing: v.optional(v.picklist(STANDINGS), 'operator'),
})

const EVENT_FORM = 'an event looks like {"source": "webhook", "topic": "/deploy", "payload": {"any": "JSON"}}'

/** Reads an event that a person has written. A payload other than a text becomes its JSON text. Throws `invalid_request`. */
export function readEvent(json: unknown): EventContent {
  const { success, output, issues } = v.safeParse(eventSchema, json)
  if (!success) {
    const [issue] = issues
    const where = v.getDotPath(issue)
    throw new AppError('invalid_request', `${where === null ? 'This is not an event' : `\`${where}\` is invalid`}: ${EVENT_FORM}`)
  }
  const { source, topic, payload, headers, standing } = output
  return {
    source,
    topic,
    payload: payload === null || typeof payload === 'string' ? payload : JSON.stringify(payload),
    standing,
    ...(headers && { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])) }),
  }
}
