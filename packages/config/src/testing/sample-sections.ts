/** The core's sections and a few sections of features, for tests of the configuration. */
import { secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { type LoadOptions, loadConfig } from '../read/load-config.ts'
import { CORE_SECTIONS } from '../sections/core-sections.ts'
import type { LoadedConfig, OwnedSection } from '../types.ts'

const roomchat = {
  path: 'channels_config.roomchat',
  schema: v.object({
    enabled: v.optional(v.boolean(), true),
    base_url: v.pipe(v.string(), v.url()),
    app_token: secretText(),
    bot_name: v.optional(v.pipe(v.string(), v.maxLength(20), v.description('Its own messages are ignored.')), ''),
    webhook_secret: v.optional(secretText({ env: ['SVC_ROOMCHAT_WEBHOOK_SECRET'], envWins: true })),
    allowed_users: v.optional(v.array(v.string()), []),
    retry: v.optional(v.object({ attempts: v.optional(whole(1, 10), 3), after_secs: v.number() })),
    on_error: v.optional(v.union([v.boolean(), v.array(v.string())]), false),
    accounts: v.optional(v.record(v.string(), v.object({ token: secretText(), nick: v.optional(v.string()) })), {}),
    kinds: v.optional(
      v.array(
        v.variant('kind', [
          v.object({ kind: v.literal('a'), size: whole(1, 5) }),
          v.object({ kind: v.literal('b'), name: v.pipe(v.string(), v.regex(/^[a-z]+$/, 'a name has lower-case letters only')) }),
        ]),
      ),
      [],
    ),
  }),
  async refine(value: { bot_name: string }) {
    const problems = value.bot_name === 'nobody' ? [{ path: ['bot_name'], message: 'no room has a bot of this name' }] : []
    return { value: { ...value, bot_name: value.bot_name.toLowerCase() }, problems }
  },
} as const

const mailpush = {
  path: 'channels_config.mailpush',
  schema: v.object({
    topic: v.string(),
    webhook_secret: v.optional(secretText({ env: ['MAILPUSH_WEBHOOK_SECRET'] })),
    label_filter: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(5))), v.metadata({ env: ['MAILPUSH_LABELS'] })), ['INBOX']),
    renew_hours: v.optional(v.pipe(v.number(), v.metadata({ env: ['MAILPUSH_RENEW', 'MAILPUSH_RENEW_OLD'] })), 24),
  }),
} as const

const metrics = {
  path: 'observability',
  schema: v.object({ metrics_loopback_only: v.optional(v.boolean(), false) }),
} as const

const aliases = { path: 'aliases', schema: v.record(v.string(), v.string()) } as const

export const SAMPLE_SECTIONS = [
  ...CORE_SECTIONS.map((section) => ({ owner: 'core', section })),
  { owner: 'channel-roomchat', section: roomchat },
  { owner: 'channel-mailpush', section: mailpush },
  { owner: 'observability-metrics', section: metrics },
  { owner: 'x-aliases', section: aliases },
] as unknown as readonly OwnedSection[]

/** Reversible and readable: `enc:<path>:<plain>`; a text of another path does not decrypt. */
export const encrypt = (plain: string, path: string): string => `enc:${path}:${plain}`

export function decrypt(text: string, path: string): string {
  if (!text.startsWith(`enc:${path}:`)) throw new Error(`not encrypted for ${path}: ${text}`)
  return text.slice(`enc:${path}:`.length)
}

export const load = (text: string | undefined, options: Partial<LoadOptions> = {}): Promise<LoadedConfig> =>
  loadConfig({ file: 'config.toml', text, sections: SAMPLE_SECTIONS, env: {}, decrypt, ...options })
