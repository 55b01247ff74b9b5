/** Reads the keys of one owner in one section: from the file, then from the environment, with secrets decrypted, and validates them. */

import * as v from 'valibot'
import { explainIssue, isMissing } from '../toml/explain-issue.ts'
import { formatKeyPath } from '../toml/key-path.ts'
import type { Finding } from '../toml/problem.ts'
import type { Key, KeyReader } from '../toml/schema-keys.ts'
import { isTable } from '../toml/unknown-keys.ts'
import type { OwnedSection, SectionState } from '../types.ts'
import { deepFreeze, hashValue } from './effective-value.ts'
import { type Environment, overlayEnvironment } from './env-overlay.ts'
import { type Decrypt, openSecrets } from './open-secrets.ts'

export interface SectionInput {
  /** The data of the whole file; empty without a file. */
  readonly file: Readonly<Record<string, unknown>>
  readonly env: Environment
  readonly decrypt: Decrypt
  /** True when no other owner has keys in this section: then its header alone configures it. */
  readonly alone: boolean
  readonly keyOf: KeyReader
}

export interface SectionReading {
  readonly state: SectionState
  readonly hash: () => string
  readonly findings: readonly Finding[]
  readonly warnings: readonly string[]
  /** The dotted keys of secrets that the file holds in plain text. */
  readonly plain: readonly string[]
  /** The environment variable behind each value that came from one, by dotted key of the whole configuration. */
  readonly variables: ReadonlyMap<string, string>
}

export async function readSection(
  { section, isUnloaded }: OwnedSection,
  { file, env, decrypt, alone, keyOf }: SectionInput,
): Promise<SectionReading> {
  if (isUnloaded) return notConfigured(`[${section.path}] is not configured`)
  const path = section.path.split('.')
  const top = keyOf(section.schema)
  const { table, wrong } = tableIn(file, path)
  const own = ownKeys(table ?? {}, top)
  const overlay = overlayEnvironment(top.shape.kind === 'table' ? top.shape.keys : new Map(), own, env, path)
  const { variables } = overlay
  const opened = await openSecrets(overlay.values, top, { path, skip: variables, decrypt })
  const result = v.safeParse(section.schema, opened.value)
  const inFile = Object.keys(own).length > 0 || (alone && table !== undefined)
  const said = inFile || variables.size > 0
  const { warnings } = overlay
  const { plain } = opened
  const earlier = [...overlay.findings, ...opened.findings]
  // A section that is turned off may be incomplete.
  const isOff = isTable(opened.value) && opened.value.enabled === false
  if (result.success) {
    const refined = said && !isOff ? await section.refine?.(result.output) : undefined
    const value = deepFreeze(refined?.value ?? result.output)
    const state: SectionState = { state: said ? 'configured' : 'defaults', value }
    const problems = (refined?.problems ?? []).map(({ path: steps, message }): Finding => {
      const key = [...path, ...steps]
      return { path: key, at: 'value', message: `\`${formatKeyPath(key)}\`: ${message}` }
    })
    return { state, hash: () => hashValue(value), findings: [...earlier, ...problems], warnings, plain, variables }
  }
  const lacking = result.issues.filter(isMissing)
  // Environment variables alone do not configure a feature, so missing or wrong values are not reported.
  if (!inFile && lacking.length > 0) {
    const names = lacking.map(({ path: steps }) => `\`${formatKeyPath((steps ?? []).map(({ key }) => String(key)))}\``)
    const why = `[${section.path}] is not configured; it needs ${names.join(', ')}`
    return { state: { state: 'unconfigured', why }, hash: () => hashValue(null), findings: [], warnings: [], plain: [], variables }
  }
  const issues = isOff ? result.issues.filter((issue) => !isMissing(issue)) : result.issues
  if (issues.length === 0) {
    return {
      state: { state: 'unconfigured', why: '`enabled` is false' },
      hash: () => hashValue(null),
      findings: earlier,
      warnings,
      plain,
      variables,
    }
  }
  const explained = issues.map((issue) => explainIssue(issue, { top, section: path, variables: variables }))
  const findings = wrong ? earlier : firstOfEachKey([...earlier, ...explained])
  const state: SectionState = { state: 'unconfigured', why: `[${section.path}] is not valid` }
  return { state, hash: () => hashValue(null), findings, warnings, plain, variables }
}

const notConfigured = (why: string): SectionReading => ({
  state: { state: 'unconfigured', why },
  hash: () => hashValue(null),
  findings: [],
  warnings: [],
  plain: [],
  variables: new Map(),
})

/** Keeps the first finding of each key, because one mistake may fail several checks. */
function firstOfEachKey(findings: readonly Finding[]): Finding[] {
  const byKey = new Map<string, Finding>()
  for (const finding of findings) {
    const key = formatKeyPath(finding.path)
    if (!byKey.has(key)) byKey.set(key, finding)
  }
  return [...byKey.values()]
}

/** Returns the table of the section; `wrong` when the path leads to another kind of value, which `checkNames` reports. */
function tableIn(file: unknown, path: readonly string[]): { table?: Readonly<Record<string, unknown>>; wrong: boolean } {
  let table = file
  for (const name of path) {
    if (!isTable(table)) return { wrong: true }
    if (!Object.hasOwn(table, name)) return { wrong: false }
    table = table[name]
  }
  return isTable(table) ? { table, wrong: false } : { wrong: true }
}

function ownKeys(table: Readonly<Record<string, unknown>>, { shape }: Key): Record<string, unknown> {
  const entries = Object.entries(table).filter(([name]) => shape.kind !== 'table' || shape.keys.has(name) || shape.rest)
  return Object.fromEntries(entries)
}
