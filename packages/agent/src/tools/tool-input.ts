/** Parses and validates the input of a tool call. A problem is a text from which the model can correct itself. */
import { nearestName } from '@sluice/kit'
import { errorText, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Scrub } from '../turn/scrub.ts'

/** `raw` is the input of the model, `value` the validated input, and `halts` as in `Tool.haltOf`. */
export type ParsedInput = { readonly raw: unknown; readonly value: unknown; readonly halts: boolean } | { readonly problem: string }

/** The part of an input that is not JSON which the model gets to see again. */
const WRITTEN_CHARS_MAX = 500
const ISSUES_MAX = 5
const ISSUE_CHARS_MAX = 200

/** Parses the JSON and validates it with the schema of the tool. Empty text counts as an empty object. */
export function parseToolInput(tool: Tool, json: string, scrub: Scrub): ParsedInput {
  let raw: unknown
  try {
    raw = json.trim() === '' ? {} : parseArguments(json)
  } catch (error) {
    const written = json.length > WRITTEN_CHARS_MAX ? `${json.slice(0, WRITTEN_CHARS_MAX)}…`.toWellFormed() : json
    return { problem: `The input of ${tool.name} is not JSON: ${errorText(error)}\nThe input was: ${scrub(written)}` }
  }
  const halt = tool.haltOf?.(raw)
  let result = v.safeParse(tool.input, halt ?? raw)
  if (!result.success && halt === undefined) result = v.safeParse(tool.input, withParsedTexts(raw, result.issues))
  if (result.success) return { raw, value: result.output, halts: halt !== undefined }
  const others = result.issues.filter((issue) => !isUnknownName(issue)).map(issueText)
  const issues = [...unknownNames(tool, halt ?? raw, result.issues), ...others]
  const more = issues.length - ISSUES_MAX
  const shown = issues.slice(0, ISSUES_MAX).map(clean(scrub))
  return { problem: `The input of ${tool.name} is not valid:\n${shown.join('\n')}${more > 0 ? `\nand ${more} more` : ''}` }
}

/**
 * Parses the arguments of a call. Models also write line breaks and other control characters into texts as they are, and words behind the
 * arguments; both are unambiguous. Throws as `JSON.parse` does for everything else, such as arguments that are cut off.
 */
function parseArguments(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    const first = firstObject(json)
    if (first === undefined) throw error
    return JSON.parse(first)
  }
}

/** The first object of a text, with the control characters in its texts escaped; undefined where it has no end. */
function firstObject(text: string): string | undefined {
  const start = text.search(/\S/)
  if (text[start] !== '{') return undefined
  let escaped = ''
  let depth = 0
  let isText = false
  for (let at = start; at < text.length; at++) {
    const char = text[at] ?? ''
    escaped += isText && char < ' ' ? JSON.stringify(char).slice(1, -1) : char
    if (isText && char === '\\') escaped += text[++at] ?? ''
    else if (char === '"') isText = !isText
    else if (!isText && (char === '{' || char === '[')) depth++
    else if (!isText && (char === '}' || char === ']') && --depth === 0) return escaped
  }
  return undefined
}

/** Models also write a list or an object as a text of JSON. Returns the input with such members parsed; every other member stays as it is. */
function withParsedTexts(raw: unknown, issues: readonly v.BaseIssue<unknown>[]): unknown {
  const isMeant = ({ expected, input, path }: v.BaseIssue<unknown>): boolean =>
    path?.length === 1 && typeof input === 'string' && (expected === 'Array' || expected === 'Object')
  const members = issues.filter(isMeant).flatMap((issue): [string, unknown][] => {
    const { input, path } = issue
    try {
      const value: unknown = JSON.parse(input as string)
      return typeof value === 'object' ? [[String(path?.[0].key), value]] : []
    } catch {
      return []
    }
  })
  return members.length === 0 ? raw : { ...(raw as object), ...Object.fromEntries(members) }
}

/** Whether the issue is about a member of the input that `unknownNames` names. */
const isUnknownName = ({ type, expected, path }: v.BaseIssue<unknown>): boolean =>
  type === 'strict_object' && expected === 'never' && path?.length === 1

const issueText = (issue: v.BaseIssue<unknown>): string => `- ${v.getDotPath(issue) ?? 'input'}: ${issue.message}`

/** Names the members of an input that its schema does not have, each with the member that was most likely meant. */
function unknownNames({ input }: Tool, given: unknown, issues: readonly v.BaseIssue<unknown>[]): string[] {
  const entries = 'entries' in input && typeof input.entries === 'object' ? input.entries : undefined
  if (!entries || typeof given !== 'object' || given === null) return []
  const free = Object.keys(entries).filter((name) => !Object.hasOwn(given, name))
  const missing = issues.map((issue) => v.getDotPath(issue) ?? '').find((name) => free.includes(name))
  return Object.keys(given)
    .filter((name) => !Object.hasOwn(entries, name))
    .map((name) => {
      const meant = nearestName(name, free) ?? missing
      return `- ${JSON.stringify(name)} is unknown${meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`}`
    })
}

const clean =
  (scrub: Scrub) =>
  (issue: string): string => {
    const text = scrub(issue)
    return text.length > ISSUE_CHARS_MAX ? `${text.slice(0, ISSUE_CHARS_MAX)}…`.toWellFormed() : text
  }
