/** From what a model wrote to what a tool takes; what does not fit becomes a text the model can correct itself by. */
import type { Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Scrub } from './scrub.ts'

/** `raw` as the model wrote it, `value` as the tool takes it; `halts` as in `Tool.haltOf`. */
export type ParsedInput = { readonly raw: unknown; readonly value: unknown; readonly halts: boolean } | { readonly problem: string }

const ISSUES_MAX = 5
const ISSUE_CHARS_MAX = 200

/** Parses the JSON and checks it against the tool's schema. Nothing at all counts as an empty object. */
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
  return { problem: `The input of ${tool.name} does not fit:\n${issues.join('\n')}${more > 0 ? `\nand ${more} more` : ''}` }
}

function issueText(issue: v.BaseIssue<unknown>, scrub: Scrub): string {
  const text = scrub(`- ${v.getDotPath(issue) ?? 'input'}: ${issue.message}`)
  return text.length > ISSUE_CHARS_MAX ? `${text.slice(0, ISSUE_CHARS_MAX)}…`.toWellFormed() : text
}
