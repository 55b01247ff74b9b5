/** The definitions of a server's tools: what the model sees of them, and a hash by which a change is noticed. */
import { createHash } from 'node:crypto'
import { errorText, printable } from '@sluice/sdk'
import { inputSchema } from './input-schema.ts'

/** A tool as the server lists it. */
export interface ListedTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: unknown
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined
}

/** A tool as it is kept and offered. */
export interface Definition {
  /** The name on the server. */
  readonly name: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** The server says that the tool only reads. */
  readonly readOnlyHint: boolean
  /** The SHA-256 of what the server listed, in hex. */
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

/** Reads the first 128 tools of a list. A tool that is too large, or whose name another one has, is left out. */
export function definitionsOf(listed: readonly ListedTool[]): Definitions {
  const tools = new Map<string, Definition>()
  const problems: string[] = []
  for (const tool of listed) {
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
function definitionOf({ name, description = '', inputSchema: schema, annotations }: ListedTool): Definition | string {
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
