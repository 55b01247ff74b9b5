/** Parses `SOP.toml`: the settings and triggers of a procedure. Every problem is reported with its position. */
import { EXECUTION_MODES, PRIORITIES, readTomlAs, type TomlProblem } from '@sluice/config'
import { expressionProblem } from '@sluice/kit/cron-expression'
import { isTimezone } from '@sluice/kit/timezone'
import { MAIN_AGENT, STANDINGS } from '@sluice/sdk'
import * as v from 'valibot'
import { parseCondition } from './condition.ts'
import type { SopCondition, SopTrigger } from './definition.ts'
import { filterProblem } from './topic-filter.ts'
import { authProblems, type WebhookKeys, webhookKeys, webhookTrigger } from './trigger-auth.ts'

/** A valid `SOP.toml` with its defaults. */
export interface SopToml {
  readonly sop: {
    readonly name: string
    readonly description: string
    readonly version: string
    readonly agent: string
    readonly priority: (typeof PRIORITIES)[number]
    readonly execution_mode?: (typeof EXECUTION_MODES)[number] | undefined
    readonly cooldown_secs: number
    readonly max_concurrent: number
    readonly max_waiting: number
    readonly count_waiting: boolean
    readonly deterministic: boolean
  }
  readonly triggers: readonly SopTrigger[]
}

const NAME_CHARS_MAX = 100
const TRIGGERS_MAX = 100
const CONDITIONS_MAX = 20
const COUNT_MAX = 1_000_000_000
const WAITING_DEFAULT = 100
const WAITING_MAX = 10_000

const text = v.pipe(v.string(), v.minLength(1))
const count = (fallback: number, max = COUNT_MAX) => v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(max)), fallback)

/** Returns a schema for a text; `problem` returns the message for an invalid one. */
const checked = (problem: (value: string) => string | undefined) =>
  v.pipe(
    text,
    v.rawCheck(({ dataset, addIssue }) => {
      const message = dataset.typed && dataset.value !== '' ? problem(dataset.value) : undefined
      if (message !== undefined) addIssue({ message })
    }),
  )

const oneCondition = v.pipe(
  v.string(),
  v.transform((value) => value.trim() || null),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed && dataset.value !== null ? conditionProblem(dataset.value) : undefined
    if (message !== undefined) addIssue({ message })
  }),
)
const conditions = v.pipe(
  v.array(oneCondition),
  v.maxLength(CONDITIONS_MAX),
  v.transform((list): SopCondition => {
    const written = list.filter((one) => one !== null)
    return written.length > 1 ? written : (written[0] ?? null)
  }),
)
const condition = v.optional(v.nullable(v.union([oneCondition, conditions])), null)

const name = checked((value) => {
  if (value.length > NAME_CHARS_MAX) return `a name has at most ${NAME_CHARS_MAX} characters`
  return /^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u.test(value)
    ? undefined
    : 'a name may only have letters, digits, spaces, dots, dashes and underscores'
})
const path = checked((value) => {
  const read = value.startsWith('/') ? pathAsRead(value) : ''
  if (![value, read].every((text) => /^\/[^\s?#]*$/.test(text))) return 'a path must begin with a slash and have no space, ? or #'
  return read === value ? undefined : `requests match the decoded path, without \\ and dot segments; write ${read}`
})
const board = checked((value) => (value.includes('/') ? 'the name of a board must not contain a slash' : undefined))
const timezone = checked((value) => (isTimezone(value) ? undefined : 'this time zone is unknown; write a name such as Europe/Berlin'))

/** Each variant is strict, so that a key of another trigger type is an error. */
const sopToml = (nowMs: number) =>
  v.object({
    sop: v.object({
      name,
      description: v.string(),
      version: v.optional(text, '0.1.0'),
      agent: v.optional(text, MAIN_AGENT),
      priority: v.optional(v.picklist(PRIORITIES), 'normal'),
      execution_mode: v.optional(v.picklist(EXECUTION_MODES)),
      cooldown_secs: count(0),
      max_concurrent: count(1),
      max_waiting: count(WAITING_DEFAULT, WAITING_MAX),
      count_waiting: v.optional(v.boolean(), true),
      deterministic: v.optional(v.boolean(), false),
    }),
    triggers: v.optional(
      v.pipe(
        v.array(
          v.variant('type', [
            v.strictObject({ type: v.literal('manual'), role: v.exactOptional(v.picklist(STANDINGS)) }),
            v.strictObject({ type: v.literal('webhook'), path, condition, ...webhookKeys }),
            v.strictObject({
              type: v.literal('cron'),
              expression: checked((value) => expressionProblem(value, nowMs)),
              timezone: v.optional(timezone, 'UTC'),
            }),
            v.strictObject({ type: v.literal('mqtt'), topic: checked(filterProblem), condition }),
            v.strictObject({ type: v.literal('peripheral'), board, signal: text, condition }),
          ]),
        ),
        v.maxLength(TRIGGERS_MAX),
        v.rawCheck(({ dataset: { typed, value }, addIssue }) => {
          if (!typed) return
          for (const [index, trigger] of value.entries()) {
            if (trigger.type !== 'webhook') continue
            const at = { type: 'array', origin: 'value', input: value, key: index, value: trigger } as const
            for (const { key, message } of authProblems(trigger)) {
              addIssue({ message, path: [at, { type: 'object', origin: 'value', input: trigger, key, value: trigger[key] }] })
            }
          }
        }),
        v.transform((triggers) => triggers.map(toTrigger)),
      ),
      [],
    ),
  })

type WrittenTrigger =
  | Exclude<SopTrigger, { readonly type: 'webhook' }>
  | ({ type: 'webhook'; path: string; condition: SopCondition } & WebhookKeys)

function toTrigger(written: WrittenTrigger): SopTrigger {
  if (written.type !== 'webhook') return written
  const { type: _, path, condition, ...keys } = written
  return webhookTrigger(path, condition, keys)
}

/** Never throws. A cron expression that is never due after `nowMs` is a problem. */
export const parseSopToml = (
  source: string,
  file: string,
  nowMs: number,
): Promise<{ readonly value?: SopToml; readonly problems: readonly TomlProblem[] }> => readTomlAs(sopToml(nowMs), source, file)

/**
 * Returns the path under which the gateway sees a request to `path`: dot segments are resolved, a backslash is a slash, and
 * escapes are decoded, except for a slash, a question mark, a percent sign and invalid UTF-8.
 */
function pathAsRead(path: string): string {
  const { pathname } = new URL(`http://localhost${path}`)
  return pathname.replaceAll('%25', '%2525').replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURI(escapes)
    } catch {
      return escapes
    }
  })
}

function conditionProblem(value: string): string | undefined {
  try {
    parseCondition(value)
    return undefined
  } catch (error) {
    return (error as SyntaxError).message
  }
}
