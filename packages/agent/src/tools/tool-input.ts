/** Parses and validates the input of a tool call. A problem is a text from which the model can correct itself. */
import { nearestName } from '@sluice/kit'
import { errorText, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { parseArguments } from '../model/parse-arguments.ts'
import type { Scrub } from '../turn/scrub.ts'
import { entriesOf, inputAsMeant, isClosed, isObject, itemOf } from './input-as-meant.ts'
import { jsonAsMeant } from './json-as-meant.ts'

/** `raw` is the input of the model, `value` the validated input, and `halts` as in `Tool.haltOf`. */
export type ParsedInput<Value = unknown> =
  | { readonly raw: unknown; readonly value: Value; readonly halts: boolean }
  | { readonly problem: string }

/** The part of an input that is not JSON which the model gets to see again. */
const WRITTEN_CHARS_MAX = 500
const ISSUES_MAX = 5
const ISSUE_CHARS_MAX = 200

/** Parses the JSON and validates it with the schema of the tool. Empty text and `null` count as an empty object. */
export function parseToolInput<Schema extends v.GenericSchema>(
  tool: Pick<Tool<Schema>, 'name' | 'input' | 'inputSchema' | 'haltOf'>,
  json: string,
  scrub: Scrub,
): ParsedInput<v.InferOutput<Schema>> {
  let raw: unknown
  try {
    raw = (json.trim() === '' ? undefined : parseArguments(json)) ?? {}
  } catch (error) {
    const written = json.length > WRITTEN_CHARS_MAX ? `${json.slice(0, WRITTEN_CHARS_MAX)}…`.toWellFormed() : json
    return { problem: `The input of ${tool.name} is not JSON: ${errorText(error)}\nThe input was: ${scrub(written)}` }
  }
  const ofSchema = inputAsMeant(tool.input, raw)
  const asMeant = tool.inputSchema ? jsonAsMeant(tool.inputSchema, ofSchema) : ofSchema
  const halt = tool.haltOf?.(raw) ?? tool.haltOf?.(asMeant)
  const meant = halt ?? asMeant
  const result = v.safeParse(tool.input, meant)
  if (result.success) return { raw, value: result.output, halts: halt !== undefined }
  const others = result.issues.filter((issue) => !isUnknownName(issue)).map(issueText)
  const issues = [...unknownNames(tool.input, meant, result.issues), ...others]
  const more = issues.length - ISSUES_MAX
  const shown = issues.slice(0, ISSUES_MAX).map(clean(scrub))
  return { problem: `The input of ${tool.name} is not valid:\n${shown.join('\n')}${more > 0 ? `\nand ${more} more` : ''}` }
}

/** Whether the issue is about a member that `unknownNames` names. */
const isUnknownName = ({ type, expected }: v.BaseIssue<unknown>): boolean => type === 'strict_object' && expected === 'never'

const issueText = (issue: v.BaseIssue<unknown>): string => `- ${placeOf(issue) || 'input'}: ${issue.message}`

/** Returns the place of an issue as `edits[0].old_text`; empty for the whole input. */
function placeOf({ path }: v.BaseIssue<unknown>): string {
  const items: readonly v.IssuePathItem[] = path ?? []
  return items.reduce((place, { key }) => memberAt(place, key), '')
}

function memberAt(place: string, key: unknown): string {
  if (typeof key === 'number') return `${place}[${key}]`
  return place === '' ? String(key) : `${place}.${String(key)}`
}

/** Names the members that the schema does not have, in the order of the input, each with the member that was most likely meant. */
function unknownNames(schema: v.GenericSchema, given: unknown, issues: readonly v.BaseIssue<unknown>[], place = ''): string[] {
  const item = itemOf(schema)
  if (item && Array.isArray(given)) return given.flatMap((one, at) => unknownNames(item, one, issues, memberAt(place, at)))
  const entries = entriesOf(schema)
  if (!entries || !isObject(given)) return []
  const free = Object.keys(entries).filter((name) => !Object.hasOwn(given, name))
  const places = new Set(issues.map(placeOf))
  const missing = free.filter((name) => places.has(memberAt(place, name)))
  return Object.entries(given).flatMap(([name, value]) => {
    const member = Object.hasOwn(entries, name) ? entries[name] : undefined
    if (member) return unknownNames(member, value, issues, memberAt(place, name))
    if (!isClosed(schema) && missing.length === 0) return []
    const meant = nearestName(name, free) ?? (missing.length === 1 ? missing[0] : undefined)
    const where = place === '' ? '' : ` in ${place}`
    return [`- ${JSON.stringify(name)} is unknown${where}${meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`}`]
  })
}

const clean =
  (scrub: Scrub) =>
  (issue: string): string => {
    const text = scrub(issue)
    return text.length > ISSUE_CHARS_MAX ? `${text.slice(0, ISSUE_CHARS_MAX)}…`.toWellFormed() : text
  }
