/** The definition of a procedure, as it is loaded from the files `SOP.toml` and `SOP.md` of its folder. */
import { lowestStanding, type SopMode, type SopPriority, type SopStep, type Standing, type WebhookAuth } from '@sluice/sdk'

/** The condition of a trigger; of a list, every condition must hold. */
export type SopCondition = string | readonly string[] | null

export type SopTrigger =
  /** The lowest standing that may start it by name; absent: `operator`. */
  | { readonly type: 'manual'; readonly role?: Standing }
  | {
      readonly type: 'webhook'
      readonly path: string
      readonly condition: SopCondition
      /** Absent: the request needs the credentials of `POST /webhook`. */
      readonly auth?: WebhookAuth
      /** The lowest standing of a caller or sender; absent: `operator`. Only without `auth`. */
      readonly role?: Standing
      /** Absent: the limit of `POST /webhook`. */
      readonly bodyBytesMax?: number
    }
  | { readonly type: 'cron'; readonly expression: string; readonly timezone: string }
  | { readonly type: 'mqtt'; readonly topic: string; readonly condition: SopCondition }
  | { readonly type: 'peripheral'; readonly board: string; readonly signal: string; readonly condition: SopCondition }

export interface SopDefinition {
  /** Unique among the loaded procedures. */
  readonly name: string
  readonly description: string
  readonly version: string
  /** The agent that carries out the steps. */
  readonly agent: string
  readonly priority: SopPriority
  readonly mode: SopMode
  readonly cooldownSecs: number
  /** 0: no run can start. */
  readonly maxConcurrent: number
  /** The largest number of runs that wait for a free slot. */
  readonly maxWaiting: number
  /** Whether a run that waits for a person counts as one of `maxConcurrent`. */
  readonly countWaiting: boolean
  readonly triggers: readonly SopTrigger[]
  /** The steps in order; at least one. */
  readonly steps: readonly SopStep[]
  /** An absolute path. */
  readonly folder: string
}

/** A problem in a file of a procedure. Line and column count from 1. */
export interface SopProblem {
  readonly file: string
  readonly line?: number
  readonly column?: number
  readonly message: string
  /** A procedure with an error is not loaded; one with only warnings is. */
  readonly severity: 'error' | 'warning'
}

/** A message about a place in a file. */
export interface Located {
  readonly message: string
  readonly line?: number
  readonly column?: number
}

/** Returns the problem that a file has an error. */
export const asError = (file: string, { message, line, column }: Located): SopProblem => ({
  file,
  ...(line !== undefined && { line }),
  ...(column !== undefined && { column }),
  message,
  severity: 'error',
})

/** Returns a trigger in the form that lists show: `webhook:/deploy`, `cron:0 9 * * *`, `manual`. */
export function triggerText(trigger: SopTrigger): string {
  switch (trigger.type) {
    case 'manual':
      return 'manual'
    case 'webhook':
      return `webhook:${trigger.path}`
    case 'cron':
      return `cron:${trigger.expression}`
    case 'mqtt':
      return `mqtt:${trigger.topic}`
    case 'peripheral':
      return `peripheral:${trigger.board}/${trigger.signal}`
  }
}

/** Returns the topic that an event must have for this trigger; for MQTT it may be a filter with wildcards. */
export function topicOf({ name }: SopDefinition, trigger: SopTrigger): string {
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

/** Returns the lowest standing that a trigger without `auth` takes. */
export const roleOf = (trigger: SopTrigger): Standing => ('role' in trigger && trigger.role) || 'operator'

/** Returns the lowest standing that may start a procedure by name. The `role` of a path does not count, because a start by name has no condition. */
export const openTo = ({ triggers }: Pick<SopDefinition, 'triggers'>): Standing =>
  lowestStanding('operator', ...triggers.filter(({ type }) => type === 'manual').map(roleOf))
