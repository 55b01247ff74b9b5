/** What an event would do (§4.3): which triggers it meets and why not the others, and how each run would go. Nothing is run. */
import type { SopEvent } from '@sluice/sdk'
import { type Unmet, unmet } from './condition.ts'
import type { SopDefinition, SopTrigger } from './definition.ts'
import { type CostRange, estimateCost, type ModelLimits } from './estimate-cost.ts'
import { EventPayload } from './event-payload.ts'
import { gateBefore } from './gate-before.ts'
import { TriggerIndex } from './trigger-index.ts'
import { triggerText } from './trigger-text.ts'

export type SimulatedEvent = Pick<SopEvent, 'source' | 'topic' | 'payload'>

export interface SimulatedTrigger {
  /** `webhook:/deploy`, … */
  readonly trigger: string
  readonly condition: string | null
  readonly matches: boolean
  /** Why not, as a sentence without its full stop; null if it matches. */
  readonly why: string | null
}

export interface SimulatedStep {
  readonly number: number
  readonly title: string
  /** Why a person is asked first; null: it goes on by itself. */
  readonly waits: ReturnType<typeof gateBefore>
  /** A turn of the agent, one call of a tool without a model, or nothing but the wait. */
  readonly by: 'agent' | 'tool' | 'nobody'
  /** The only tools it may use; null: every tool. */
  readonly tools: readonly string[] | null
}

export interface SimulatedSop {
  readonly sop: string
  readonly triggers: readonly SimulatedTrigger[]
  /** A trigger matches, and its limits would let it start were nothing else under way. */
  readonly starts: boolean
  /** Why it does not although a trigger matches. */
  readonly held: string | null
  /** As they would go if everything is approved and completed, whether it starts or not. */
  readonly steps: readonly SimulatedStep[]
  readonly cost: CostRange
}

/** Pure. `model` is what a turn of a step may use and cost. */
export function simulate(definitions: readonly SopDefinition[], event: SimulatedEvent, model: ModelLimits): SimulatedSop[] {
  const payload = new EventPayload(event.payload)
  return definitions.map((definition) => {
    const triggers = definition.triggers.map((trigger) => simulateTrigger(definition, trigger, event, payload))
    const isMeant = triggers.some(({ matches }) => matches)
    const held = isMeant && definition.maxConcurrent === 0 ? 'its max_concurrent is 0' : null
    const steps = definition.steps.map(
      (step): SimulatedStep => ({
        number: step.number,
        title: step.title,
        waits: gateBefore(definition.mode, definition.priority, step),
        by: step.kind === 'checkpoint' ? 'nobody' : definition.mode === 'deterministic' ? 'tool' : 'agent',
        tools: step.tools,
      }),
    )
    return {
      sop: definition.name,
      triggers,
      starts: isMeant && held === null,
      held,
      steps,
      cost: estimateCost(definition, event.payload, model),
    }
  })
}

function simulateTrigger(definition: SopDefinition, trigger: SopTrigger, event: SimulatedEvent, payload: EventPayload): SimulatedTrigger {
  const condition = 'condition' in trigger ? trigger.condition : null
  const why = whyNot(definition, trigger, event, payload)
  return { trigger: triggerText(trigger), condition, matches: why === null, why }
}

function whyNot(definition: SopDefinition, trigger: SopTrigger, { source, topic }: SimulatedEvent, payload: EventPayload): string | null {
  if (trigger.type !== source) return `the event is of kind ${source}`
  // The index of this trigger alone, so that what is simulated is what is done.
  const [found] = new TriggerIndex([{ ...definition, triggers: [trigger] }]).triggersFor(source, topic)
  if (!found) return `the topic is ${JSON.stringify(topic)}`
  const code = found.condition && unmet(found.condition, payload)
  return code ? WORDING[code] : null
}

const WORDING: Readonly<Record<Unmet, string>> = {
  no_payload: 'its condition does not hold: the event has no payload',
  not_json: 'its condition does not hold: the payload is not JSON',
  not_there: 'its condition does not hold: the payload has nothing at that path',
  not_comparable: 'its condition does not hold: the value in the payload cannot be compared',
  differs: 'its condition does not hold: the value in the payload is another',
}
