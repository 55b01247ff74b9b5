/** Describes the tools for models, once for each registry, on the first turn that needs it. */
import type { ModelTool, Tool } from '@sluice/sdk'
import type { Registry } from './registry.ts'

export type ToolSpecs = (registry: Registry) => Promise<ModelTool[]>

export function createToolSpecs(): ToolSpecs {
  const made = new WeakMap<Registry, Promise<ModelTool[]>>()
  return (registry) => {
    const known = made.get(registry)
    if (known) return known
    const specs = describeTools(registry.offered)
    made.set(registry, specs)
    specs.catch(() => made.delete(registry))
    return specs
  }
}

/** Resolves to the tools as models read them, in the same order. */
export async function describeTools(tools: readonly Tool[]): Promise<ModelTool[]> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  return tools.map(({ name, description, input, inputSchema: given }) => {
    if (given) return { type: 'function', name, description, inputSchema: given as ModelTool['inputSchema'] }
    // Checks that JSON Schema cannot express are left out here; they still apply to the call.
    const { $schema: _, ...inputSchema } = toJsonSchema(input, { typeMode: 'input', errorMode: 'ignore' })
    return { type: 'function', name, description, inputSchema: inputSchema as ModelTool['inputSchema'] }
  })
}
