/**
 * Deferred tools: where the descriptions of the tools that other programs bring, such as MCP servers, are too long, they are found by
 * `tool_search` and called by `tool_call`. The described tools are then the same in all requests of a session.
 */
import { defineTool, type ModelTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { estimateTokens } from '../history/tokens.ts'
import type { Scrub } from '../turn/scrub.ts'
import { parseToolInput } from './tool-input.ts'

export const TOOL_SEARCH = 'tool_search'
export const TOOL_CALL = 'tool_call'

/** The largest part of the window that tools of other programs take, and the largest number of tokens. */
const WINDOW_SHARE = 1 / 10
const TOKENS_MAX = 8000
const FOUND_MAX = 5
/** The names in the description of `tool_search`; further ones are only counted. */
const NAMES_CHARS_MAX = 1200

const callInput = v.object({
  name: v.pipe(v.string(), v.minLength(1)),
  input: v.optional(v.union([v.record(v.string(), v.unknown()), v.string()]), {}),
})

/** A tool that another program describes. */
const isDeferrable = ({ inputSchema }: Tool): boolean => inputSchema !== undefined

/** Returns the described tools, with the two tools for the deferred ones if these are too long for a window of this size. */
export function describedTools(tools: readonly Tool[], specs: readonly ModelTool[], windowTokens: number): ModelTool[] {
  const deferred = new Set(tools.filter(isDeferrable).map(({ name }) => name))
  if (deferred.size === 0) return [...specs]
  const tokens = estimateTokens(JSON.stringify(specs.filter(({ name }) => deferred.has(name))))
  if (tokens <= Math.min(TOKENS_MAX, windowTokens * WINDOW_SHARE)) return [...specs]
  return [...specs.filter(({ name }) => !deferred.has(name)), searchSpec([...deferred]), CALL_SPEC]
}

function searchSpec(names: readonly string[]): ModelTool {
  let shown = ''
  let count = 0
  for (const name of names) {
    if (shown.length + name.length > NAMES_CHARS_MAX) break
    shown += `${count++ === 0 ? '' : ', '}${name}`
  }
  const more = names.length > count ? ` and ${names.length - count} more` : ''
  return {
    type: 'function',
    name: TOOL_SEARCH,
    description: `Finds further tools by words and returns their descriptions and inputs; ${TOOL_CALL} calls them. There are: ${shown}${more}.`,
    inputSchema: {
      type: 'object',
      properties: { query: { type: 'string', description: 'Names or words of a task' } },
      required: ['query'],
    },
  }
}

const CALL_SPEC: ModelTool = {
  type: 'function',
  name: TOOL_CALL,
  description: `Calls a tool that ${TOOL_SEARCH} has found.`,
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, input: { type: 'object', description: 'As the description of the tool says' } },
    required: ['name', 'input'],
  },
}

/** The tool `tool_search` among these tools. */
export const searchTool = (tools: readonly Tool[], describe: () => Promise<readonly ModelTool[]>): Tool =>
  defineTool({
    name: TOOL_SEARCH,
    description: 'Finds tools.',
    input: v.object({ query: v.pipe(v.string(), v.minLength(1), v.maxLength(1000)) }),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    async run({ query }) {
      const names = new Set(tools.filter(isDeferrable).map(({ name }) => name))
      const found = bestMatches(
        query,
        (await describe()).filter(({ name }) => names.has(name)),
      )
      if (found.length === 0) return 'No tool fits. Try other words.'
      return found.map(({ name, description, inputSchema }) => JSON.stringify({ name, description, inputSchema })).join('\n')
    },
  })

function bestMatches(query: string, specs: readonly ModelTool[]): ModelTool[] {
  const words = new Set(
    query
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u)
      .filter((word) => word !== ''),
  )
  const scored = specs.map((spec) => {
    const name = spec.name.toLowerCase()
    const text = `${spec.description ?? ''}`.toLowerCase()
    let score = name === query.trim().toLowerCase() ? 100 : 0
    for (const word of words) score += (name.includes(word) ? 3 : 0) + (text.includes(word) ? 1 : 0)
    return { spec, score }
  })
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX)
    .map(({ spec }) => spec)
}

/** Returns the call that `tool_call` makes, or the problem of its input. */
export function innerCall(json: string, scrub: Scrub): { readonly name: string; readonly input: string } | { readonly problem: string } {
  const parsed = parseToolInput({ name: TOOL_CALL, input: callInput }, json, scrub)
  if ('problem' in parsed) return parsed
  const { name, input } = parsed.value
  return { name, input: typeof input === 'string' ? input : JSON.stringify(input) }
}
