/** `[tools.shell]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const shellSection = {
  path: 'tools.shell',
  schema: v.object({
    timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('How long a command may run; a call may ask for less')), 60),
    env_passthrough: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/))),
        v.description("Variables of the daemon's environment a command gets, besides PATH, HOME, TERM and LANG"),
      ),
      [],
    ),
    output_bytes_max: v.optional(
      v.pipe(whole(1024, 1_048_576), v.description('Of standard output and of standard error, each; the rest is dropped')),
      65_536,
    ),
    network: v.optional(v.pipe(v.boolean(), v.description('Whether a sandboxed command may use the network')), false),
  }),
} as const

export type ShellConfig = v.InferOutput<typeof shellSection.schema>
