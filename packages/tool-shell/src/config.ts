/** `[tools.shell]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const shellSection = {
  path: 'tools.shell',
  schema: v.object({
    /** How long a command may run; a call may ask for less. */
    timeout_secs: v.optional(whole(1, 3600), 60),
    /** Names of the daemon's environment variables a command gets, besides PATH, HOME, TERM and LANG. */
    env_passthrough: v.optional(v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/))), []),
    /** Of standard output and of standard error, each. */
    output_bytes_max: v.optional(whole(1024, 1_048_576), 65_536),
    /** Whether a sandboxed command may use the network. */
    network: v.optional(v.boolean(), false),
  }),
} as const

export type ShellConfig = v.InferOutput<typeof shellSection.schema>
