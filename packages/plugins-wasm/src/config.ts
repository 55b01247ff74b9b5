/** `[plugins]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const described = <const Schema extends v.GenericSchema>(schema: Schema, text: string) => v.pipe(schema, v.description(text))

const security = v.object({
  signature_mode: v.optional(
    described(
      v.picklist(['required', 'required_for_urls', 'off']),
      'Which plugins need the signature of a trusted publisher; a wrong signature is refused whatever this says',
    ),
    'required_for_urls',
  ),
  trusted_publisher_keys: v.optional(
    described(
      v.array(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'an ed25519 public key in 64 hex digits'))),
      'ed25519 public keys, in hex',
    ),
    [],
  ),
})

const limits = v.object({
  time_ms: v.optional(described(whole(10, 300_000), 'A call that takes longer is ended'), 10_000),
  memory_mb: v.optional(described(whole(1, 2048), 'Of one call, at most'), 64),
  fuel: v.optional(described(whole(1000), 'Instructions of one call, about'), 5_000_000_000),
  output_kb: v.optional(described(whole(1, 10_240), 'A longer answer is refused'), 256),
  input_kb: v.optional(described(whole(1, 10_240), 'A longer input is refused'), 256),
  instances: v.optional(described(whole(1, 64), 'Calls at once, and plugins kept ready, all together'), 4),
})

const host = v.pipe(
  v.string(),
  v.check(
    (name) => !name.includes('*') && URL.parse(`https://${name}`)?.hostname === name,
    'a host name such as api.example.com, without port or path',
  ),
)

export const pluginsSection = {
  path: 'plugins',
  schema: v.object({
    enabled: v.optional(described(v.boolean(), 'True: installed plugins are tools'), false),
    plugins_dir: v.optional(
      described(v.pipe(v.string(), v.minLength(1)), 'Where they are installed; relative to the data directory, ~ is your home'),
      'plugins',
    ),
    security: v.optional(security, {}),
    limits: v.optional(limits, {}),
    grants: v.optional(
      v.record(
        v.string(),
        v.object({
          network: v.optional(described(v.array(host), 'Hosts this plugin may send requests to, if it asks for the network'), []),
        }),
      ),
      {},
    ),
  }),
} as const

export type PluginsConfig = v.InferOutput<typeof pluginsSection.schema>

/** Hosts the operator granted to the plugin of this name. */
export const hostsGranted = ({ grants }: Pick<PluginsConfig, 'grants'>, name: string): readonly string[] =>
  Object.hasOwn(grants, name) ? (grants[name]?.network ?? []) : []
