/** Definitions, problems and simulations of procedures in the form that the API and the command line show. */
import * as v from 'valibot'
import { type SopDefinition, type SopProblem, triggerText } from '../definition/definition.ts'
import type { WaitingSop } from '../library/load-sop.ts'
import { gateBefore } from '../run/gates.ts'
import { MODES, PRIORITIES } from './shown.ts'

const nullableTexts = v.nullable(v.array(v.string()))
const waits = v.pipe(v.nullable(v.picklist(['mode', 'confirmation', 'checkpoint'])), v.description('Why the step waits for a person'))

export const definitionSchema = v.object({
  name: v.string(),
  description: v.string(),
  version: v.string(),
  agent: v.string(),
  priority: v.picklist(PRIORITIES),
  mode: v.picklist(MODES),
  cooldownSecs: v.number(),
  maxConcurrent: v.number(),
  maxWaiting: v.pipe(v.number(), v.description('The largest number of runs that wait for a free slot')),
  countWaiting: v.pipe(v.boolean(), v.description('Whether a run that waits for a person takes a slot')),
  triggers: v.array(
    v.looseObject({
      type: v.picklist(['manual', 'webhook', 'cron', 'mqtt', 'peripheral']),
      text: v.pipe(v.string(), v.description('As in the list of procedures, such as `webhook:/deploy`')),
    }),
  ),
  steps: v.array(
    v.object({
      number: v.number(),
      title: v.string(),
      body: v.string(),
      tools: v.pipe(nullableTexts, v.description('The only tools of the step; null: every tool')),
      requiresConfirmation: v.boolean(),
      kind: v.picklist(['execute', 'checkpoint']),
      input: v.unknown(),
      output: v.unknown(),
      waits,
    }),
  ),
  folder: v.string(),
})

export type ShownDefinition = v.InferOutput<typeof definitionSchema>

export const shownDefinition = (definition: SopDefinition): ShownDefinition => ({
  ...definition,
  triggers: definition.triggers.map((trigger) => ({ ...trigger, text: triggerText(trigger) })),
  steps: definition.steps.map((step) => ({
    ...step,
    tools: step.tools && [...step.tools],
    waits: gateBefore(definition.mode, definition.priority, step),
  })),
})

export const problemSchema = v.object({
  file: v.string(),
  line: v.exactOptional(v.number()),
  column: v.exactOptional(v.number()),
  message: v.string(),
  severity: v.picklist(['error', 'warning']),
})

export type ShownProblem = v.InferOutput<typeof problemSchema>

export const shownProblem = (problem: SopProblem): ShownProblem => ({ ...problem })

export const waitingSchema = v.object({
  folder: v.string(),
  hash: v.pipe(v.string(), v.description('The SHA-256 of the content of both files')),
  changed: v.pipe(v.boolean(), v.description('True if an operator accepted an earlier content of this folder')),
  toml: v.pipe(v.nullable(v.string()), v.description('The text of SOP.toml')),
  md: v.pipe(v.nullable(v.string()), v.description('The text of SOP.md')),
})

export type ShownWaiting = v.InferOutput<typeof waitingSchema>

export const shownWaiting = ({ folder, hash, isChanged, toml, md }: WaitingSop): ShownWaiting => ({
  folder,
  hash,
  changed: isChanged,
  toml,
  md,
})

const range = v.object({ min: v.number(), max: v.number() })

export const simulatedSchema = v.object({
  sop: v.string(),
  triggers: v.array(
    v.object({
      trigger: v.string(),
      condition: v.nullable(v.union([v.string(), v.array(v.string())])),
      matches: v.boolean(),
      why: v.nullable(v.string()),
    }),
  ),
  starts: v.boolean(),
  held: v.pipe(v.nullable(v.string()), v.description('Why no run starts although a trigger matches')),
  steps: v.array(
    v.object({ number: v.number(), title: v.string(), waits, by: v.picklist(['agent', 'tool', 'nobody']), tools: nullableTexts }),
  ),
  cost: v.object({ modelCalls: range, usd: v.nullable(range) }),
})
