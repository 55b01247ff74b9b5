/** The configuration sections of the core. */
import { isIP } from 'node:net'
import { fromEnv, httpUrl, NOTICE_KINDS, type Section, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { clusterSection } from './cluster-section.ts'
import { agentsSection } from './further-agents-section.ts'
import { gatewayTexts } from './gateway-texts.ts'
import { limitsSection } from './limits-section.ts'
import { agentSection, costSection } from './main-agent-sections.ts'
import { isAddress, parseNetwork } from './network.ts'
import { isTarget, TARGETS } from './notification-targets.ts'
import { policySection } from './policy-section.ts'
import { providerSection } from './provider-section.ts'
import { resetKeys } from './reset-keys.ts'
import { sopSection } from './sop-section.ts'

/** The last label of a host name must not be a number: `300.1.2.3` is a mistyped address. */
const HOST_NAME = /^(?!.*(?:^|\.)\d+$)[a-z0-9][a-z0-9._-]{0,252}$/i

const text = v.pipe(v.string(), v.minLength(1))
const flag = (fallback: boolean, meaning: string) => v.optional(v.pipe(v.boolean(), v.description(meaning)), fallback)
const texts = (fallback: string[], meaning: string) => v.optional(v.pipe(v.array(v.string()), v.description(meaning)), fallback)
const count = (fallback: number, min: number, max: number, meaning: string) =>
  v.optional(v.pipe(whole(min, max), v.description(meaning)), fallback)

/** `[gateway]`. */
export const gatewaySection = {
  path: 'gateway',
  schema: v.object({
    host: v.optional(
      v.pipe(
        text,
        v.check(
          (host) => isAddress(host) || HOST_NAME.test(host) || isIP(host) !== 0,
          'must be an IP address or a host name, without scheme and port',
        ),
        fromEnv('SVC_GATEWAY_HOST'),
        v.description('Address to bind'),
      ),
      '127.0.0.1',
    ),
    port: v.optional(v.pipe(whole(0, 65_535), fromEnv('SVC_GATEWAY_PORT'), v.description('Port to bind; 0 takes any free one')), 42_617),
    require_pairing: v.optional(
      v.pipe(
        v.boolean(),
        fromEnv('SVC_REQUIRE_PAIRING'),
        v.description("True: callers present a paired device's bearer token. False only on a trusted machine, bound to loopback"),
      ),
      true,
    ),
    webhook_secret: v.optional(
      v.pipe(
        secretText({ env: ['SVC_GATEWAY_WEBHOOK_SECRET'], envWins: true, digestKey: 'webhook_secret_sha256' }),
        v.description(
          'Secret that POST /webhook also requires in X-Webhook-Secret. `sluice config set` writes its hash, webhook_secret_sha256, in its place',
        ),
      ),
    ),
    webhook_secret_sha256: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[0-9a-f]{64}$/i, 'must be a SHA-256 in 64 hexadecimal digits'),
        v.toLowerCase(),
        v.description('The SHA-256 of this secret, in hexadecimal digits; a webhook_secret is used instead of it'),
      ),
    ),
    idempotency_ttl_secs: count(300, 1, 31_536_000, 'How long a repeated X-Idempotency-Key counts as a duplicate'),
    idempotency_max_keys: count(10_000, 1, 10_000_000, 'The largest number of remembered keys; the oldest are dropped first'),
    webhook_rate_limit_per_minute: count(60, 0, 1_000_000, 'Requests to POST /webhook that one address may make in a minute; 0: no limit'),
    pair_rate_limit_per_minute: count(10, 0, 1_000_000, 'Requests to POST /pair that one address may make in a minute; 0: no limit'),
    rate_limit_max_keys: count(
      10_000,
      1,
      10_000_000,
      'The largest number of addresses that a limiter tracks; the least recently used are dropped first',
    ),
    trust_forwarded_headers: flag(
      false,
      'True: for requests from trusted_proxies, the client address comes from X-Forwarded-For, or from X-Real-IP without it',
    ),
    trusted_proxies: v.optional(
      v.pipe(
        v.array(
          v.pipe(
            v.string(),
            v.check((entry) => parseNetwork(entry) !== undefined, 'must be an address or a network such as 10.0.0.0/8'),
          ),
        ),
        v.description('Networks of proxies whose forwarding headers count; the client is the rightmost forwarded address outside of them'),
      ),
      ['127.0.0.0/8', '::1/128'],
    ),
    allowed_hosts: texts([], 'Host names, in addition to loopback, that requests without a bearer token may use'),
    public_url: v.optional(
      v.pipe(
        httpUrl(),
        fromEnv('SVC_GATEWAY_PUBLIC_URL'),
        v.description('Public URL at which platforms reach this daemon, for `sluice webhook check`'),
      ),
    ),
    allow_unsigned_webhooks: flag(false, 'True: the daemon serves channels without a secret on an address that is not loopback'),
    callable_tools: texts(
      [],
      'Tools that clients may call directly, without a model, at `POST /api/tools/{name}/calls` and over MCP; the policy and approvals apply',
    ),
    max_connections: count(10_000, 1, 1_000_000, 'The largest number of open connections'),
    max_subscribers: count(5000, 1, 1_000_000, 'The largest number of open event streams and WebSockets'),
    pairing_code_ttl_secs: count(600, 10, 86_400, 'How long a pairing code can be used'),
    texts: v.optional(gatewayTexts, {}),
  }),
} as const

/** `[delivery]`: limits, retries and retention of messages. */
export const deliverySection = {
  path: 'delivery',
  schema: v.object({
    max_pending: count(
      10_000,
      1,
      10_000_000,
      'The largest number of messages of one account that wait for a turn; one more is answered 503',
    ),
    max_queue_secs: count(
      3600,
      1,
      604_800,
      'Seconds that turns of one account may wait to start; after that its messages are answered 503',
    ),
    max_attempts: count(
      5,
      1,
      100,
      'The largest number of attempts that a crash interrupted or that failed inside Sluice; then the message is a dead letter',
    ),
    max_age_hours: count(
      24,
      1,
      720,
      'Hours that a message is retried while the model is not available, and a reply while the platform is not',
    ),
    notice_after_secs: count(
      60,
      0,
      86_400,
      'Seconds after which a sender is told that the message still waits, because its turn failed and is tried again, or in a shared room behind messages of other people; 0: never',
    ),
    dedupe_hours: count(72, 72, 8760, 'Hours that a message id is remembered'),
    retention_days: count(7, 1, 3650, 'Days that messages, replies, turns, approvals and procedure runs are kept after they ended'),
    retention_mb: count(
      512,
      1,
      1_000_000,
      'Megabytes that all data together may take, without the audit log. Beyond it the oldest data is deleted first: contents of ended messages, then sent replies and ended turns, then messages of conversations',
    ),
  }),
} as const

/** `[backup]`: backups that the daemon makes, and `sluice backup` without a file. */
export const backupSection = {
  path: 'backup',
  schema: v.object({
    schedule: v.optional(
      v.pipe(text, v.description('When the daemon makes a backup, such as `0 3 * * *`: a cron expression; without it, it makes none')),
    ),
    timezone: v.optional(v.pipe(text, v.description('The time zone of the schedule')), 'UTC'),
    folder: v.optional(v.pipe(text, v.description('The folder of the backups; a relative path is below the data directory')), 'backups'),
    keep: count(7, 1, 10_000, 'The number of backups that stay in the folder; the oldest are deleted after a new one is verified'),
    with_secrets: flag(false, 'True: the secrets and their key are in these backups'),
    passphrase: v.optional(v.pipe(secretText(), v.description('Encrypts these backups'))),
  }),
} as const

/** `[sessions]`: conversations. */
export const sessionsSection = {
  path: 'sessions',
  schema: v.object({
    retention_days: count(
      0,
      0,
      3650,
      'Days that the messages of a conversation are kept; 0: without a limit of time, within [delivery] retention_mb',
    ),
    reset: v.optional(resetKeys),
  }),
} as const

const target = v.pipe(
  v.string(),
  v.check(isTarget, `must be one of ${TARGETS.join(', ')}, or a channel with a conversation of it, such as signal:+15550100`),
)

/** `[approvals]`: the people who are asked when a question names none. */
export const approvalsSection = {
  path: 'approvals',
  schema: v.object({
    channels: v.optional(
      v.pipe(
        v.array(target),
        v.description(
          `Where operators are asked in addition to the conversation of the turn: ${TARGETS.join(', ')}, or <channel>:<conversation>; with dashboard, every operator sees and decides tool calls`,
        ),
      ),
      [],
    ),
    tool_timeout_secs: count(300, 1, 604_800, 'Seconds that a tool call waits for a person; then it is refused'),
  }),
} as const

/** `[notify]`: the notices that operators get, and where. */
export const notifySection = {
  path: 'notify',
  schema: v.object({
    channels: v.optional(
      v.pipe(
        v.array(target),
        v.description(
          `The chats in which operators are told of what needs them: ${TARGETS.join(', ')}, or <channel>:<conversation>. Default: [approvals] channels. The page lists every notice`,
        ),
      ),
    ),
    kinds: v.optional(
      v.pipe(
        v.array(v.picklist(NOTICE_KINDS)),
        v.description(
          'What they are told of. refused: a model refuses to answer. budget: a limit of [cost] is reached. given_up: a message or a reply became a dead letter, messages of a channel may be missing, or a run of a procedure failed. channel: a channel is down or degraded. expired: a run of a procedure waited too long. loop: a conversation was paused. config: a changed configuration or a feature failed. clock: the clock jumped',
        ),
      ),
      [...NOTICE_KINDS],
    ),
    every_mins: count(60, 0, 10_080, 'Minutes within which the same thing is told once; 0: each time'),
  }),
} as const

/** `[observability]`: the keys that all backends share. */
const observabilityBackend = v.pipe(
  v.picklist(['none', 'noop', 'log', 'textmetrics', 'otel', 'opentelemetry', 'otlp']),
  v.transform((name) => (name === 'opentelemetry' || name === 'otlp' ? 'otel' : name)),
)

export const observabilitySection = {
  path: 'observability',
  schema: v.object({
    backend: v.optional(
      v.pipe(observabilityBackend, v.description('The observability backend; opentelemetry and otlp are other spellings of otel')),
      'none',
    ),
    backends: v.optional(
      v.pipe(v.array(observabilityBackend), v.description('Further backends in addition to `backend`, such as ["log", "textmetrics"]')),
      [],
    ),
  }),
} as const

/** The names of every observability backend that the section turns on. */
export const observabilityBackends = ({ backend, backends }: v.InferOutput<typeof observabilitySection.schema>): readonly string[] => [
  ...new Set([backend, ...backends]),
]

/** `[security.sandbox]`. */
export const sandboxSection = {
  path: 'security.sandbox',
  schema: v.object({
    enabled: flag(true, 'False: processes run unconfined, whatever the backend'),
    backend: v.optional(
      v.pipe(
        v.picklist(['auto', 'none', 'jail', 'userns', 'fsrestrict', 'seatbelt', 'container']),
        v.description('auto chooses the strongest backend that passes a live probe'),
      ),
      'auto',
    ),
    required: flag(false, 'True: tools refuse to start processes while the backend, or with auto every backend, does not work'),
    max_memory_mb: count(
      2048,
      16,
      1_048_576,
      'Megabytes of memory of a command: of all its processes together where the system can count them, else of each process',
    ),
    max_processes: count(256, 8, 100_000, 'The largest number of simultaneous processes of a command'),
    max_cpu_secs: count(600, 1, 86_400, 'Seconds of processor time of each process of a command'),
    max_file_mb: count(1024, 1, 1_048_576, 'Megabytes of each file that a command writes'),
  }),
} as const

/** `[http]`: requests to addresses that a model or a sender named. */
export const httpSection = {
  path: 'http',
  schema: v.object({ allow_private: texts([], 'Hosts that may have a private address') }),
} as const

/** `[log]`. */
export const logSection = {
  path: 'log',
  schema: v.object({
    level: v.optional(
      v.pipe(v.picklist(['debug', 'info', 'warn', 'error']), fromEnv('SVC_LOG_LEVEL'), v.description('The lowest level that is logged')),
      'info',
    ),
    format: v.optional(
      v.pipe(
        v.picklist(['auto', 'text', 'json']),
        fromEnv('SVC_LOG_FORMAT'),
        v.description('auto: text on a terminal, JSON lines otherwise'),
      ),
      'auto',
    ),
  }),
} as const

export type BackupConfig = v.InferOutput<typeof backupSection.schema>
export type ApprovalsConfig = v.InferOutput<typeof approvalsSection.schema>
export type DeliveryConfig = v.InferOutput<typeof deliverySection.schema>
export type SandboxConfig = v.InferOutput<typeof sandboxSection.schema>
export type GatewayConfig = v.InferOutput<typeof gatewaySection.schema>

/** `[store]`: the database. */
export const storeSection = {
  path: 'store',
  schema: v.object({
    backend: v.optional(
      v.pipe(
        v.picklist(['sqlite', 'postgres']),
        fromEnv('SVC_STORE_BACKEND'),
        v.description('sqlite: one file in the data directory. postgres: a PostgreSQL server, which `url` names'),
      ),
      'sqlite',
    ),
    url: v.optional(
      v.pipe(
        secretText({ env: ['SVC_STORE_URL'], envWins: true }),
        v.description(
          'postgres://user:password@host:port/database. Of several hosts, separated by commas, the one that accepts writes is used',
        ),
      ),
    ),
    schema: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[a-z_][a-z0-9_]{0,39}$/, 'must be a plain name in lower case'),
        v.description('The schema of the tables; created if it does not exist'),
      ),
      'sluice',
    ),
    tls: v.optional(
      v.pipe(
        v.picklist(['auto', 'verify', 'off']),
        v.description(
          'verify: TLS with a valid certificate. auto: the same, but no TLS on loopback. off: the password and all data are sent in clear',
        ),
      ),
      'auto',
    ),
    ca_file: v.optional(v.pipe(text, v.description("File with the certificate of the authority that signed the server's certificate"))),
    connect_timeout_secs: count(5, 1, 60, 'Seconds that a connection may take to open'),
    read_connections: count(2, 1, 50, 'Connections that read'),
    write_connections: count(4, 1, 50, 'Connections for transactions of several steps, besides the one that most writes share'),
  }),
} as const

export type StoreConfig = v.InferOutput<typeof storeSection.schema>

export const CORE_SECTIONS: readonly Section[] = [
  gatewaySection,
  deliverySection,
  backupSection,
  sessionsSection,
  limitsSection,
  approvalsSection,
  notifySection,
  agentSection,
  agentsSection,
  providerSection,
  costSection,
  sopSection,
  policySection,
  sandboxSection,
  observabilitySection,
  httpSection,
  logSection,
  storeSection,
  clusterSection,
] as unknown as readonly Section[]
