/** The configuration section `[peripherals]`: the keys that all hardware shares, and the key of this feature. */
import { peripheralKeys } from '@sluice/hardware'
import * as v from 'valibot'

export const peripheralsSection = {
  path: 'peripherals',
  schema: v.object({
    ...peripheralKeys,
    discover: v.optional(
      v.pipe(v.boolean(), v.description('Whether to detect USB boards, and notice when they are connected or removed')),
      true,
    ),
  }),
} as const

export type PeripheralsConfig = v.InferOutput<typeof peripheralsSection.schema>
