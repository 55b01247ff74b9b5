/** The bullets that configure a step: `- tools: a, b`, `- kind: checkpoint` and the others. */

import { nearestName } from '@sluice/kit'
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { isNestedTooDeeply, NESTING_MAX } from './json-text.ts'
import { schemaProblem } from './output-schema.ts'

/** The values of the bullets, by their keys. */
export interface StepSettings {
  readonly tools: readonly string[]
  readonly requires_confirmation: boolean
  readonly kind: 'execute' | 'checkpoint'
  readonly input: unknown
  readonly output: unknown
}

/** The column counts from 1 and points at the value, or at the key when the key is unknown. */
export type Setting =
  | { readonly key: keyof StepSettings; readonly value: unknown; readonly column: number }
  | { readonly message: string; readonly column: number }

const BULLET = /^(?<indent>\s*[-*+]\s+)(?<key>[A-Za-z][A-Za-z_ -]{0,40}):\s*(?<value>.*)$/s
const TOOL = /^[\w.:-]{1,128}$/
const TOOLS_MAX = 64

/** Each reader throws a `SyntaxError` whose message completes a sentence about the key. */
const READERS: { readonly [Key in keyof StepSettings]: (text: string) => StepSettings[Key] } = {
  tools: readTools,
  requires_confirmation: (text) => readWord(text, { true: true, false: false }),
  kind: (text) => readWord(text, { execute: 'execute', checkpoint: 'checkpoint' }),
  input: readJson,
  output: readSchema,
}
const KEYS = Object.keys(READERS) as (keyof StepSettings)[]

/** Returns undefined for a line that is not a setting, such as an ordinary bullet of the body. */
export function readSetting(line: string): Setting | undefined {
  const text = line.trimEnd()
  const { indent = '', key: name, value = '' } = BULLET.exec(text)?.groups ?? {}
  if (name === undefined) return undefined
  const written = name.trimEnd()
  const key = KEYS.find((known) => known === written)
  const near = nearestName(written.replaceAll(' ', '_'), KEYS)
  if (!key)
    return near === undefined
      ? undefined
      : { message: `\`${written}\` is not a setting; did you mean \`${near}\`?`, column: indent.length + 1 }
  const column = text.length - value.length + 1
  try {
    return { key, value: READERS[key](value), column }
  } catch (error) {
    return { message: `\`${key}\` ${(error as SyntaxError).message}`, column }
  }
}

function readTools(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim().replace(/^`(.*)`$/, '$1'))
  if (names.length > TOOLS_MAX) throw new SyntaxError(`must name at most ${TOOLS_MAX} tools`)
  const wrong = names.find((name) => !TOOL.test(name))
  if (wrong !== undefined) throw new SyntaxError(`must be tool names separated by commas; got ${JSON.stringify(wrong.slice(0, 40))}`)
  return [...new Set(names)]
}

function readWord<Value>(text: string, words: Readonly<Record<string, Value>>): Value {
  const value = Object.hasOwn(words, text) ? words[text] : undefined
  if (value === undefined) throw new SyntaxError(`must be ${Object.keys(words).join(' or ')}; got ${JSON.stringify(text.slice(0, 40))}`)
  return value
}

function readJson(text: string): unknown {
  const value = parsedOrUndefined(text)
  if (value === undefined) throw new SyntaxError('must be JSON on a single line')
  if (isNestedTooDeeply(value)) throw new SyntaxError(`must not be nested more than ${NESTING_MAX} levels deep`)
  return value
}

function readSchema(text: string): unknown {
  const schema = readJson(text)
  const problem = schemaProblem(schema)
  if (problem !== undefined)
    throw new SyntaxError(`must be a JSON Schema: ${problem.startsWith('must') ? `the schema ${problem}` : problem}`)
  return schema
}
