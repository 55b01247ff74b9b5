/** The configuration section `[plugins]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

const described = <const Schema extends v.GenericSchema>(schema: Schema, text: string) => v.pipe(schema, v.description(text))

const security = v.object({
  signature_mode: v.optional(
    described(
      v.picklist(['required', 'required_for_urls', 'off']),
      'Which plugins need the signature of a trusted publisher. A wrong signature is refused in every mode',
    ),
    'required_for_urls',
  ),
  trusted_publisher_keys: v.optional(
    described(
      v.array(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, 'must be an ed25519 public key of 64 hex digits'))),
      'Public keys of trusted publishers: ed25519, in hex',
    ),
    [],
  ),
})

const limits = v.object({
  time_ms: v.optional(described(whole(10, 300_000), 'Time limit of one call in milliseconds'), 10_000),
  memory_mb: v.optional(described(whole(1, 2048), 'Memory limit of one call in MiB'), 64),
  fuel: v.optional(described(whole(1000), 'Approximate limit of instructions per call'), 5_000_000_000),
  output_kb: v.optional(described(whole(1, 10_240), 'Maximum output of one call in KiB'), 256),
  input_kb: v.optional(described(whole(1, 10_240), 'Maximum input of one call in KiB'), 256),
  instances: v.optional(described(whole(1, 64), 'Maximum number of workers, both running and ready, for all plugins together'), 4),
})

const host = v.pipe(
  v.string(),
  v.check(
    (name) => !name.includes('*') && URL.parse(`https://${name}`)?.hostname === name,
    'must be a host name such as api.example.com, without port or path',
  ),
)

export const pluginsSection = {
  path: 'plugins',
  schema: v.object({
    enabled: v.optional(described(v.boolean(), 'Whether installed plugins are available as tools'), false),
    plugins_dir: v.optional(
      described(v.pipe(v.string(), v.minLength(1)), 'Folder of installed plugins, relative to the data directory; ~ is the home directory'),
      'plugins',
    ),
    security: v.optional(security, {}),
    limits: v.optional(limits, {}),
    grants: v.optional(
      v.record(
        v.string(),
        v.object({
          network: v.optional(
            described(v.array(host), 'Hosts to which the plugin may send requests, if its manifest asks for the network'),
            [],
          ),
        }),
      ),
      {},
    ),
  }),
} as const

export type PluginsConfig = v.InferOutput<typeof pluginsSection.schema>

/** Returns the hosts that the operator granted to the plugin `name`. */
export const hostsGranted = ({ grants }: PluginsConfig, name: string): readonly string[] =>
  Object.hasOwn(grants, name) ? (grants[name]?.network ?? []) : []
