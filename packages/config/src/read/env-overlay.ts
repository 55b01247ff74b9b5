/** Reads the values of keys from environment variables. */

import { wrongVariable } from '../toml/explain-issue.ts'
import { formatKeyPath, type KeyPath } from '../toml/key-path.ts'
import type { Finding } from '../toml/problem.ts'
import type { Key } from '../toml/schema-keys.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Overlay {
  /** A copy of the values of the section with the values from the environment. */
  readonly values: Readonly<Record<string, unknown>>
  /** The variable that supplied a value, by dotted key. */
  readonly variables: ReadonlyMap<string, string>
  readonly findings: readonly Finding[]
  readonly warnings: readonly string[]
}

/**
 * An empty variable counts as not set, and so does a blank secret in the file or a variable, so that a slip does not turn a
 * check off. A variable with `envWins` overrides the file; any other variable supplies a value that the file does not have.
 */
export function overlayEnvironment(keys: ReadonlyMap<string, Key>, values: object, env: Environment, section: KeyPath): Overlay {
  const variables = new Map<string, string>()
  const findings: Finding[] = []
  const warnings: string[] = []

  const overlay = (names: ReadonlyMap<string, Key>, given: object, at: KeyPath): Record<string, unknown> => {
    const result: Record<string, unknown> = { ...given }
    for (const [name, key] of names) {
      const path = [...at, name]
      if (key.shape.kind === 'table' && key.shape.keys.size > 0) {
        const before = result[name]
        if (before !== undefined && (typeof before !== 'object' || before === null)) continue
        const inner = overlay(key.shape.keys, before ?? {}, path)
        if (before !== undefined || Object.keys(inner).length > 0) result[name] = inner
      }
      const isBlankSecret = isBlank(result[name]) && key.metadata.secret
      if (isBlankSecret) delete result[name]
      const variable = key.metadata.env?.find((candidate) => (key.metadata.secret ? env[candidate]?.trim() : env[candidate]))
      const text = variable && env[variable]
      if (isBlankSecret && !text) warnings.push(`\`${formatKeyPath(path)}\` is blank, so it counts as not set`)
      if (!text || (result[name] !== undefined && !key.metadata.envWins)) continue
      variables.set(formatKeyPath(path), variable)
      const value = fromText(text, key)
      if (value === undefined) findings.push({ path, at: 'nowhere', message: wrongVariable(variable, path, key, text) })
      else result[name] = value
    }
    return result
  }

  return { values: overlay(keys, values, section), variables, findings, warnings }
}

const isBlank = (value: unknown): boolean => typeof value === 'string' && value.trim() === ''

/** Converts the text of a variable to the kind of the key; `undefined` when it does not match. */
function fromText(text: string, { shape }: Key): unknown {
  switch (shape.kind) {
    case 'flag':
      return { true: true, '1': true, false: false, '0': false }[text.trim().toLowerCase()]
    case 'number':
      return /^\s*[+-]?\d+(\.\d+)?(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : undefined
    case 'choice':
      return shape.options.find((option) => String(option) === text)
    case 'list': {
      const parts = text.split(',').flatMap((part) => part.trim() || [])
      const items = parts.map((part) => fromText(part, shape.item))
      return items.includes(undefined) ? undefined : items
    }
    case 'table':
      return undefined
    default:
      return text
  }
}
