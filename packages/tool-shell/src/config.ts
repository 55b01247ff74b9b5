/** The configuration section `[tools.shell]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const shellSection = {
  path: 'tools.shell',
  schema: v.object({
    timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('Seconds that a command may run; a call may ask for fewer')), 60),
    env_passthrough: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/))),
        v.description("Variables of the daemon's environment that a command receives in addition to PATH, HOME, TERM and LANG"),
      ),
      [],
    ),
    output_bytes_max: v.optional(
      v.pipe(whole(1024, 1_048_576), v.description('Bytes kept of standard output, and of standard error; the rest is dropped')),
      65_536,
    ),
    network: v.optional(v.pipe(v.boolean(), v.description('Whether a sandboxed command may use the network')), false),
  }),
} as const

export type ShellConfig = v.InferOutput<typeof shellSection.schema>
