/** The definitions of a server's tools: the parts that the model sees, and a hash that reveals a change. */
import { createHash } from 'node:crypto'
import { errorText, printable } from '@sluice/sdk'
import * as v from 'valibot'
import { inputSchema } from './input-schema.ts'

/** A tool as the server lists it. */
const listedTool = v.looseObject({
  name: v.string(),
  /** Some generators write `null` for a tool that is not described. */
  description: v.nullish(v.string()),
  inputSchema: v.optional(v.unknown()),
  annotations: v.optional(v.looseObject({ readOnlyHint: v.optional(v.boolean()) })),
})
type ListedTool = v.InferOutput<typeof listedTool>

/** A tool as it is kept and offered. */
export interface Definition {
  /** The name on the server. */
  readonly name: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** The server says that the tool only reads. */
  readonly readOnlyHint: boolean
  /** The SHA-256 of the definition that the server listed, in hex. */
  readonly hash: string
}

export interface Definitions {
  readonly tools: readonly Definition[]
  /** Why other tools of the list are left out. */
  readonly problems: readonly string[]
}

export const TOOLS_MAX = 128
const DEFINITION_CHARS_MAX = 65_536
const DESCRIPTION_CHARS_MAX = 2000
const NAME_CHARS_MAX = 256

/** Reads the first 128 tools of a list. A tool that is malformed or too large, or whose name another one has, is left out. */
export function definitionsOf(listed: readonly unknown[]): Definitions {
  const tools = new Map<string, Definition>()
  const problems: string[] = []
  for (const [at, given] of listed.entries()) {
    const { success, output: tool, issues } = v.safeParse(listedTool, given)
    if (!success) {
      problems.push(`tool ${at + 1} of its list is left out: ${v.getDotPath(issues[0]) ?? 'it'} is malformed`)
      if (problems.length >= TOOLS_MAX) break
      continue
    }
    const name = printable(tool.name.slice(0, NAME_CHARS_MAX))
    const problem = tools.has(tool.name)
      ? 'another tool has the same name'
      : tools.size >= TOOLS_MAX
        ? `only ${TOOLS_MAX} tools are used`
        : undefined
    const read = problem ?? definitionOf(tool)
    if (typeof read === 'string') problems.push(`'${name}' is left out: ${read}`)
    else tools.set(tool.name, read)
    if (problems.length >= TOOLS_MAX) break
  }
  return { tools: [...tools.values()], problems }
}

/** Returns the definition, or the reason why the tool cannot be used. */
function definitionOf({ name, description: given, inputSchema: schema, annotations }: ListedTool): Definition | string {
  const description = given ?? ''
  if (name === '' || name.length > NAME_CHARS_MAX) return `its name must have 1 to ${NAME_CHARS_MAX} characters`
  try {
    const listed = JSON.stringify([name, description, schema, annotations?.readOnlyHint === true])
    if (listed.length > DEFINITION_CHARS_MAX) return `its definition has more than ${DEFINITION_CHARS_MAX} characters`
    return {
      name,
      description: printable(description.slice(0, DESCRIPTION_CHARS_MAX)).toWellFormed(),
      inputSchema: inputSchema(schema),
      readOnlyHint: annotations?.readOnlyHint === true,
      hash: createHash('sha256').update(listed).digest('hex'),
    }
  } catch (error) {
    return `its definition cannot be read: ${errorText(error)}`
  }
}
