/** Parses and validates the input of a tool call. A problem is a text from which the model can correct itself. */
import type { Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Scrub } from '../turn/scrub.ts'

/** `raw` is the input of the model, `value` the validated input, and `halts` as in `Tool.haltOf`. */
export type ParsedInput = { readonly raw: unknown; readonly value: unknown; readonly halts: boolean } | { readonly problem: string }

const ISSUES_MAX = 5
const ISSUE_CHARS_MAX = 200

/** Parses the JSON and validates it with the schema of the tool. Empty text counts as an empty object. */
export function parseToolInput(tool: Tool, json: string, scrub: Scrub): ParsedInput {
  let raw: unknown
  try {
    raw = json.trim() === '' ? {} : JSON.parse(json)
  } catch (error) {
    return { problem: `The input of ${tool.name} is not JSON: ${error instanceof Error ? error.message : error}` }
  }
  const halt = tool.haltOf?.(raw)
  const result = v.safeParse(tool.input, halt ?? raw)
  if (result.success) return { raw, value: result.output, halts: halt !== undefined }
  const issues = result.issues.slice(0, ISSUES_MAX).map((issue) => issueText(issue, scrub))
  const more = result.issues.length - issues.length
  return { problem: `The input of ${tool.name} is not valid:\n${issues.join('\n')}${more > 0 ? `\nand ${more} more` : ''}` }
}

function issueText(issue: v.BaseIssue<unknown>, scrub: Scrub): string {
  const text = scrub(`- ${v.getDotPath(issue) ?? 'input'}: ${issue.message}`)
  return text.length > ISSUE_CHARS_MAX ? `${text.slice(0, ISSUE_CHARS_MAX)}…`.toWellFormed() : text
}
