/** `[memory]`. */
import * as v from 'valibot'

export const memorySection = {
  path: 'memory',
  schema: v.object({
    shared: v.optional(
      v.pipe(
        v.boolean(),
        v.description('True: whatever the agent remembers from now on, every client can have it recall, replace and forget'),
      ),
      false,
    ),
  }),
} as const

export type MemoryConfig = v.InferOutput<typeof memorySection.schema>
