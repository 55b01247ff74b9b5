/** The configuration section `[tools.shell]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const shellSection = {
  path: 'tools.shell',
  schema: v.object({
    timeout_secs: v.optional(
      v.pipe(
        whole(1, 3600),
        v.description(
          'Seconds that a call waits for its command; a call may ask for fewer. Then the command runs on in the background, or is ended where background_secs is 0 (default: 60)',
        ),
      ),
    ),
    background_secs: v.optional(
      v.pipe(
        whole(0, 86_400),
        v.description(
          'Seconds that a command may run in the background in all; 0: none does (default: 3600, and 0 where timeout_secs is set)',
        ),
      ),
    ),
    env_passthrough: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/))),
        v.description("Variables of the daemon's environment that a command receives in addition to PATH, HOME, TERM and LANG"),
      ),
      [],
    ),
    output_bytes_max: v.optional(
      v.pipe(
        whole(1024, 1_048_576),
        v.description('Bytes kept of standard output, and of standard error; of more, the beginning and the end remain'),
      ),
      65_536,
    ),
    network: v.optional(v.pipe(v.boolean(), v.description('Whether a sandboxed command may use the network')), false),
  }),
} as const

/** The section, with the two times as they are in force. */
export interface ShellConfig extends v.InferOutput<typeof shellSection.schema> {
  readonly timeout_secs: number
  readonly background_secs: number
}

const TIMEOUT_SECS = 60
const BACKGROUND_SECS = 3600

/** A file that sets `timeout_secs` was written when this time ended every command. */
export const shellConfig = (section: v.InferOutput<typeof shellSection.schema>): ShellConfig => ({
  ...section,
  timeout_secs: section.timeout_secs ?? TIMEOUT_SECS,
  background_secs: section.background_secs ?? (section.timeout_secs === undefined ? BACKGROUND_SECS : 0),
})
