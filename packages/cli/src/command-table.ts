/** Every command of the core, as data: help, completions and the documentation read it without loading one. */
import type { ParseArgsOptionsConfig } from 'node:util'
import { ROLES } from '@sluice/sdk'
import { APPROVAL_COMMANDS } from './approval-commands.ts'
import type { CliContext } from './context.ts'
import { DELIVERY_COMMANDS } from './delivery-commands.ts'
import { MEMORY_COMMANDS } from './memory-commands.ts'
import { SESSION_COMMANDS } from './session-commands.ts'
import { SOP_COMMANDS } from './sop-commands.ts'

export interface CliOption {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  readonly multiple?: true
  /** Shown after the option in help: `<seconds>`. */
  readonly value?: string
  readonly help: string
}

export interface CliCommand {
  /** The words that select it. */
  readonly name: string
  readonly summary: string
  /** A second paragraph of its help. */
  readonly more?: string
  /** What follows the words in the usage line. */
  readonly usage?: string
  readonly options?: Readonly<Record<string, CliOption>>
  /** How many positional arguments it takes at most; default 0. */
  readonly argsMax?: number
  readonly argsMin?: number
  /** True: what is not a common option goes to the command as it is, options included. */
  readonly passesOn?: true
  load(): Promise<{ run(context: CliContext): Promise<number> }>
}

/** Options every command takes (decisions, command line contract). */
export const COMMON_OPTIONS = {
  config: { type: 'string', value: '<file>', help: 'configuration file (default: config.toml in the data directory)' },
  'data-dir': { type: 'string', value: '<dir>', help: 'data directory (default: ~/.sluice, or SVC_DATA_DIR)' },
  json: { type: 'boolean', help: 'machine-readable output' },
  help: { type: 'boolean', short: 'h', help: 'show help' },
} as const satisfies Record<string, CliOption>

const ROLE_OPTION = { type: 'string', value: ROLES.join('|'), help: `what the device may do (default: ${ROLES[0]})` } as const

const ROLES_EXPLAINED =
  'An operator may do everything. A client may talk to the agent, and sees only its own sessions, turns, approvals and memories: give an app or another person a client.'

/** As many keys as a section has, each with its value. */
const SET_ARGS_MAX = 64

export const COMMANDS: readonly CliCommand[] = [
  {
    name: 'daemon',
    summary: 'Run the daemon in the foreground',
    options: {
      host: { type: 'string', value: '<address>', help: 'address to bind, instead of [gateway] host' },
      port: { type: 'string', value: '<number>', help: 'port to bind, instead of [gateway] port; 0 takes any free one' },
      'new-database': { type: 'boolean', help: 'start with an empty database where the one of this data directory is missing' },
    },
    load: () => import('./commands/daemon.ts'),
  },
  { name: 'status', summary: 'Show whether the daemon runs, and how it is', load: () => import('./commands/status.ts') },
  { name: 'doctor', summary: 'Check this installation and say what to mend', load: () => import('./commands/doctor.ts') },
  {
    name: 'features',
    summary: 'List every feature: compiled in, configured, running, and how to get it',
    load: () => import('./commands/features.ts'),
  },
  { name: 'config check', summary: 'Validate the configuration file', load: () => import('./commands/config-check.ts') },
  {
    name: 'config get',
    summary: 'Print the effective configuration, or one value of it',
    usage: '[key]',
    argsMax: 1,
    options: { source: { type: 'boolean', help: 'show where each value comes from: the file, a variable or the default' } },
    load: () => import('./commands/config-get.ts'),
  },
  {
    name: 'config set',
    summary: 'Change values in the file, all or none; comments stay, secrets are encrypted',
    more: 'The value of a last key without one is read from standard input; a secret typed at a terminal is not shown. A single secret that the file holds in plain text is encrypted instead.',
    usage: '<key> [value] [<key> <value>]…',
    argsMin: 1,
    argsMax: SET_ARGS_MAX,
    options: { unset: { type: 'boolean', help: 'remove the keys instead' } },
    load: () => import('./commands/config-set.ts'),
  },
  {
    name: 'config seal',
    summary: 'Encrypt every secret that the file holds in plain text',
    load: () => import('./commands/config-seal.ts'),
  },
  { name: 'config schema', summary: 'Print the JSON Schema of the configuration file', load: () => import('./commands/config-schema.ts') },
  { name: 'config init', summary: 'Write a commented starter configuration', load: () => import('./commands/config-init.ts') },
  {
    name: 'pair new',
    summary: 'Print a one-time pairing code',
    more: ROLES_EXPLAINED,
    options: { role: ROLE_OPTION },
    load: () => import('./commands/pair-new.ts'),
  },
  {
    name: 'pair token',
    summary: 'Print a new bearer token, and nothing else',
    more: ROLES_EXPLAINED,
    options: {
      role: ROLE_OPTION,
      name: { type: 'string', value: '<name>', help: 'what the device list calls it' },
      'expires-days': { type: 'string', value: '<days>', help: 'refuse it after so many days (default: never)' },
    },
    load: () => import('./commands/pair-token.ts'),
  },
  { name: 'pair list', summary: 'List paired devices', load: () => import('./commands/pair-list.ts') },
  {
    name: 'pair revoke',
    summary: "Revoke a device's token and the passkeys it registered, in force at once",
    usage: '<device-id>',
    options: { 'keep-passkeys': { type: 'boolean', help: 'keep the passkeys it registered, and the sign-ins with them' } },
    argsMin: 1,
    argsMax: 1,
    load: () => import('./commands/pair-revoke.ts'),
  },
  {
    name: 'agent',
    summary: 'Run one agent turn without a daemon',
    options: {
      message: { type: 'string', short: 'm', value: '<text>', help: 'what to say; without it, standard input' },
      session: { type: 'string', short: 's', value: '<name>', help: 'continue a named session' },
    },
    load: () => import('./commands/agent.ts'),
  },
  {
    name: 'webhook send',
    summary: 'Post a message to a running daemon, as a device or as the provider of a channel, and show its verdict and reply',
    usage: '[message]',
    argsMax: 1,
    options: {
      url: { type: 'string', value: '<url>', help: "the daemon's address (default: the one running on the data directory)" },
      token: { type: 'string', value: '<token>', help: "bearer token (default: one of this command's own, listed as 'webhook send')" },
      secret: { type: 'string', value: '<secret>', help: 'X-Webhook-Secret (default: the configured one)' },
      session: { type: 'string', short: 's', value: '<name>', help: 'X-Session-Id' },
      'idempotency-key': { type: 'string', value: '<key>', help: 'X-Idempotency-Key' },
      async: { type: 'boolean', help: 'do not wait for the reply (Prefer: respond-async)' },
      channel: {
        type: 'string',
        value: '<name>',
        help: "send it as this channel's provider would, signed with the configured secret; the reply is really sent",
      },
      sender: {
        type: 'string',
        value: '<sender>',
        help: 'with --channel: who says it, and really gets the reply (default: the first of the allowlist)',
      },
      to: {
        type: 'string',
        value: '<conversation>',
        help: 'with --channel: the conversation it is in, such as a room, where replies go there',
      },
      id: { type: 'string', value: '<id>', help: "with --channel: the provider's message id (default: a new one)" },
      wait: { type: 'string', value: '<seconds>', help: 'with --channel: how long to follow the message (default: 30; 0: not at all)' },
      'bad-signature': { type: 'boolean', help: 'with --channel: spoil the signature, to see it refused' },
    },
    load: () => import('./commands/webhook-send.ts'),
  },
  {
    name: 'webhook check',
    summary: 'Check the webhook of each configured channel, and the way to it from outside',
    options: {
      'public-url': { type: 'string', value: '<url>', help: 'where providers reach this daemon (default: [gateway] public_url)' },
    },
    load: () => import('./commands/webhook-check.ts'),
  },
  ...DELIVERY_COMMANDS,
  ...SESSION_COMMANDS,
  ...APPROVAL_COMMANDS,
  ...SOP_COMMANDS,
  ...MEMORY_COMMANDS,
  {
    name: 'completions',
    summary: 'Print a completion script for bash, zsh or fish',
    usage: '<shell>',
    argsMin: 1,
    argsMax: 1,
    load: () => import('./commands/completions.ts'),
  },
]

/** The options of a command in the form `node:util` parses. */
export const parserOptions = (command: Pick<CliCommand, 'options'>): ParseArgsOptionsConfig =>
  Object.fromEntries(
    Object.entries({ ...command.options, ...COMMON_OPTIONS } as Record<string, CliOption>).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short ? { short } : {}), ...(multiple ? { multiple } : {}) },
    ]),
  )
