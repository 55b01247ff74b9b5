/** `[peripherals]` (§2.6): the keys all hardware shares, and this feature's own. */
import { peripheralKeys } from '@sluice/hardware'
import * as v from 'valibot'

export const peripheralsSection = {
  path: 'peripherals',
  schema: v.object({
    ...peripheralKeys,
    discover: v.optional(v.pipe(v.boolean(), v.description('Whether boards on USB are looked for, and noticed as they come and go')), true),
  }),
} as const

export type PeripheralsConfig = v.InferOutput<typeof peripheralsSection.schema>
