/** The section `[memory]`. */
import * as v from 'valibot'

export const memorySection = {
  path: 'memory',
  schema: v.object({
    shared: v.optional(
      v.pipe(
        v.boolean(),
        v.description('Whether all clients share what the agent remembers from now on: every client can recall, replace and forget it'),
      ),
      false,
    ),
  }),
} as const

export type MemoryConfig = v.InferOutput<typeof memorySection.schema>
