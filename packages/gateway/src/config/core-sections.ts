/** The gateway's own configuration sections (§2.1, §2.6 and the decisions). */
import { agentSection, costSection, policySection, providerSection } from '@sluice/agent/config'
import { fromEnv, type Section, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const flag = (fallback: boolean) => v.optional(v.boolean(), fallback)
const texts = (...fallback: string[]) => v.optional(v.array(v.string()), fallback)

/** `[gateway]`. */
export const gatewaySection = {
  path: 'gateway',
  schema: v.object({
    host: v.optional(v.pipe(v.string(), v.minLength(1), fromEnv('SVC_GATEWAY_HOST')), '127.0.0.1'),
    port: v.optional(v.pipe(whole(0, 65_535), fromEnv('SVC_GATEWAY_PORT')), 42_617),
    require_pairing: v.optional(v.pipe(v.boolean(), fromEnv('SVC_REQUIRE_PAIRING')), true),
    webhook_secret: v.optional(secretText({ env: ['SVC_GATEWAY_WEBHOOK_SECRET'], envWins: true })),
    idempotency_ttl_secs: v.optional(whole(1, 31_536_000), 300),
    idempotency_max_keys: v.optional(whole(1, 10_000_000), 10_000),
    webhook_rate_limit_per_minute: v.optional(whole(0, 1_000_000), 60),
    pair_rate_limit_per_minute: v.optional(whole(0, 1_000_000), 10),
    rate_limit_max_keys: v.optional(whole(1, 10_000_000), 10_000),
    trust_forwarded_headers: flag(false),
    trusted_proxies: texts('127.0.0.0/8', '::1/128', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7', 'fe80::/10'),
    allowed_hosts: texts(),
    allow_unsigned_webhooks: flag(false),
    max_connections: v.optional(whole(1, 1_000_000), 10_000),
    max_subscribers: v.optional(whole(1, 1_000_000), 5000),
    pairing_code_ttl_secs: v.optional(whole(10, 86_400), 600),
  }),
} as const

/** `[observability]`, the keys that belong to no single backend. */
export const observabilitySection = {
  path: 'observability',
  schema: v.object({
    backend: v.optional(
      v.pipe(
        v.picklist(['none', 'noop', 'log', 'textmetrics', 'otel', 'opentelemetry', 'otlp']),
        v.transform((name) => (name === 'opentelemetry' || name === 'otlp' ? 'otel' : name)),
      ),
      'none',
    ),
  }),
} as const

/** `[security.sandbox]`. */
export const sandboxSection = {
  path: 'security.sandbox',
  schema: v.object({
    enabled: flag(true),
    backend: v.optional(v.picklist(['auto', 'none', 'jail', 'userns', 'fsrestrict', 'seatbelt', 'container']), 'auto'),
    required: flag(false),
  }),
} as const

/** `[http]`: requests to addresses a model or a stranger names. */
export const httpSection = {
  path: 'http',
  schema: v.object({ allow_private: texts() }),
} as const

/** `[log]`. */
export const logSection = {
  path: 'log',
  schema: v.object({
    level: v.optional(v.pipe(v.picklist(['debug', 'info', 'warn', 'error']), fromEnv('SVC_LOG_LEVEL')), 'info'),
    format: v.optional(v.pipe(v.picklist(['auto', 'text', 'json']), fromEnv('SVC_LOG_FORMAT')), 'auto'),
  }),
} as const

export type GatewayConfig = v.InferOutput<typeof gatewaySection.schema>

export const CORE_SECTIONS: readonly Section[] = [
  gatewaySection,
  agentSection,
  providerSection,
  costSection,
  policySection,
  sandboxSection,
  observabilitySection,
  httpSection,
  logSection,
] as unknown as readonly Section[]
