/**
 * The catalogue: one literal row for every feature. Features of a build are checked against it, and stubs for left-out features
 * answer from it (docs/contract.md#features). It imports nothing, so that reading it loads nothing.
 */

export type Profile = 'minimal' | 'standard' | 'full'
/** An operating system; Linux is the one that the tests run on. */
export type System = 'linux' | 'macos' | 'windows'
export type FeatureKind = 'channel' | 'provider' | 'tool' | 'hardware' | 'sandbox' | 'observability' | 'gateway' | 'store'

/** The usage of a command, for help and completion without loading its feature. */
export interface CommandHelp {
  readonly summary: string
  /** The arguments in the usage line, such as `<directory-or-archive-or-url>`. */
  readonly usage?: string
  /** The options of the command, by name without dashes. `value` names the value of an option. */
  readonly options?: Readonly<Record<string, { readonly value?: string; readonly help: string }>>
}

export interface Row {
  /** The build flag; null for a feature that is always compiled in. */
  readonly flag: string | null
  readonly kind: FeatureKind
  /** The smallest shipped profile with the feature; null when no profile has it. */
  readonly profile: Profile | null
  readonly summary: string
  /** The systems that it works on. Default: all. */
  readonly runsOn?: readonly System[]
  /** The configuration section. `keys` lists the feature's keys in a shared section. */
  readonly section?: string
  /** Further sections of the feature. */
  readonly moreSections?: readonly string[]
  readonly keys?: readonly string[]
  /** The file of the data directory that configures the feature. */
  readonly file?: string
  readonly tools?: readonly string[]
  /** True when the names of its tools are known only after it was built. */
  readonly namesItsTools?: true
  /** The routes as `METHOD /path`, with the webhook of a channel. */
  readonly routes?: readonly string[]
  readonly commands?: readonly string[]
  /** The help of each command, by the words of the command. */
  readonly commandHelp?: Readonly<Record<string, CommandHelp>>
  /** The value of `[security.sandbox] backend`, `[observability] backend` or `[store] backend`. */
  readonly backend?: string
  /** The name of a channel as a notification target, such as `messenger`. */
  readonly target?: string
  /** The values of `[provider] kind`. */
  readonly kinds?: readonly string[]
}

const always = { flag: null, profile: 'minimal' } as const
const linux = { runsOn: ['linux'] } as const
/** Windows has no process groups, by which the daemon ends what it has started. */
const unix = { runsOn: ['linux', 'macos'] } as const

export const CATALOGUE = {
  'provider-offline': {
    ...always,
    kind: 'provider',
    summary: 'The built-in deterministic provider, without key and network',
    kinds: ['offline'],
  },
  'provider-openai': {
    ...always,
    kind: 'provider',
    summary: 'Models of OpenAI, of many other services by name, and of any OpenAI-compatible endpoint',
    kinds: [
      'openai',
      'ollama',
      'groq',
      'cerebras',
      'deepseek',
      'mistral',
      'xai',
      'together',
      'openrouter',
      'azure',
      'bedrock',
      'lmstudio',
      'vllm',
      'llamacpp',
    ],
  },
  'provider-google': {
    flag: 'provider-google',
    kind: 'provider',
    profile: 'full',
    summary: 'Models of the Gemini API',
    kinds: ['google'],
  },
  'provider-anthropic': { ...always, kind: 'provider', summary: 'Models of the Anthropic messages API', kinds: ['anthropic'] },

  'tool-files': {
    ...always,
    kind: 'tool',
    summary: 'Read, change, list and search files in the workspace',
    tools: ['file_read', 'file_write', 'file_edit', 'file_list', 'grep', 'glob'],
  },
  'tool-shell': {
    ...always,
    ...unix,
    kind: 'tool',
    summary: 'Run a command inside the sandbox',
    section: 'tools.shell',
    tools: ['shell', 'shell_wait', 'shell_stop'],
  },
  'tool-http': {
    ...always,
    kind: 'tool',
    summary: 'HTTP requests to allowed public hosts',
    section: 'tools.http_request',
    tools: ['http_request'],
  },
  'tool-memory': {
    ...always,
    kind: 'tool',
    summary: 'Remember things across sessions',
    section: 'memory',
    tools: ['memory_store', 'memory_recall', 'memory_forget'],
  },
  'tool-sop': {
    ...always,
    kind: 'tool',
    summary: 'Procedures: list, start, follow and report',
    tools: ['sop_list', 'sop_execute', 'sop_status', 'sop_approve', 'sop_advance'],
  },
  'trigger-mqtt': {
    ...always,
    kind: 'gateway',
    summary: 'Procedures triggered by an MQTT broker',
    section: 'channels_config.mqtt',
  },
  mcp: {
    flag: 'mcp',
    kind: 'tool',
    profile: 'standard',
    summary: 'Tools, resources and prompts of MCP servers, and this agent as an MCP server',
    section: 'mcp',
    namesItsTools: true,
    routes: ['POST /mcp', 'GET /api/mcp/servers', 'POST /api/mcp/servers/:name/test', 'POST /api/mcp/servers/:name/accept'],
    commands: ['mcp list', 'mcp test', 'mcp accept', 'mcp add', 'mcp remove', 'mcp login'],
    commandHelp: {
      'mcp list': { summary: 'List the configured MCP servers and their tools' },
      'mcp test': {
        summary: 'Connect to an MCP server and show what it offers and what has changed',
        usage: '<name>',
      },
      'mcp accept': {
        summary: 'Accept a new or changed tool as it is; the hash identifies the definition that you have read',
        usage: '<name> <tool> <hash>',
      },
      'mcp add': {
        summary: 'Add an MCP server to the configuration: a program after --, or an address',
        usage: '<name> [-- <command> [argument]...]',
        options: {
          url: { value: '<url>', help: 'the address of a server that is reached over streamable HTTP' },
          env: { value: '<name=value>', help: 'an environment variable of the program; may be repeated' },
          'secret-env': { value: '<name>', help: 'an environment variable whose value is a secret and is asked for; may be repeated' },
          header: { value: '<name>', help: 'a request header whose value is asked for; may be repeated' },
          network: { help: 'let the program use the network' },
          writable: { value: '<folder>', help: 'a folder that the program may write to, such as "." for the workspace; may be repeated' },
          shared: { help: 'one process or connection for all clients' },
        },
      },
      'mcp remove': { summary: 'Remove an MCP server from the configuration, with what is known of it', usage: '<name>' },
      'mcp login': { summary: 'Log in at an MCP server that asks for it, with a browser', usage: '<name>' },
    },
  },
  'tool-schedule': {
    flag: 'schedule',
    kind: 'tool',
    profile: 'standard',
    summary: 'Reminders: turns at times that clients asked for',
    section: 'schedule',
    tools: ['schedule_create', 'schedule_list', 'schedule_cancel'],
    routes: ['GET /api/schedules', 'DELETE /api/schedules/:id'],
    commands: ['schedule list', 'schedule cancel'],
    commandHelp: {
      'schedule list': { summary: 'List the reminders of all clients' },
      'schedule cancel': { summary: 'Cancel a reminder', usage: '<id>' },
    },
  },
  'tool-skills': {
    flag: 'skills',
    kind: 'tool',
    profile: 'standard',
    summary: 'Skills: folders of instructions and scripts that the agent reads when a task needs them',
    section: 'skills',
    tools: ['skill_read'],
    routes: ['GET /api/skills', 'GET /api/skills/:name', 'POST /api/skills/waiting/:name/accept'],
    commands: ['skills list', 'skills show', 'skills check', 'skills waiting', 'skills accept', 'skills add', 'skills remove'],
    commandHelp: {
      'skills list': { summary: 'List the skills and their problems' },
      'skills show': { summary: 'Show the files of a skill', usage: '<name>' },
      'skills check': { summary: 'Check all skills, or one folder, and print the place of each problem', usage: '[folder]' },
      'skills waiting': { summary: 'List skills that the agent proposes in the workspace, or show the files of one', usage: '[name]' },
      'skills accept': {
        summary: 'Install a proposed skill as it is; the hash identifies the content that you have read',
        usage: '<name> <hash>',
      },
      'skills add': {
        summary: 'Copy a folder with a skill into the folder of skills',
        usage: '<folder>',
        options: { replace: { help: 'replace a skill of the same name' } },
      },
      'skills remove': { summary: 'Delete a skill from the folder of skills', usage: '<name>' },
    },
  },
  'tool-web': {
    flag: 'web',
    kind: 'tool',
    profile: 'standard',
    summary: 'Search the web and read public pages',
    section: 'tools.web',
    tools: ['web_search', 'web_fetch'],
  },
  'tool-pdf': { flag: 'rag-pdf', kind: 'tool', profile: 'full', summary: 'Text of PDF files', tools: ['pdf_read'] },
  'tool-browser': { ...always, kind: 'tool', summary: 'Drive a browser', ...unix, section: 'browser', tools: ['browser'] },
  'tool-browser-native': {
    flag: 'browser-native',
    kind: 'tool',
    profile: 'full',
    summary: 'Drive an installed Chromium without another program',
    ...unix,
  },

  transcription: { ...always, kind: 'gateway', summary: 'Recordings to text', section: 'transcription' },
  speech: { ...always, kind: 'gateway', summary: 'Text to spoken audio', section: 'speech' },

  'channel-chatapp': {
    ...always,
    kind: 'channel',
    summary: 'WhatsApp, by the Business Cloud API',
    section: 'channels_config.chatapp',
    routes: ['GET /chatapp', 'POST /chatapp'],
  },
  'channel-textrelay': {
    ...always,
    kind: 'channel',
    summary: 'iMessage, RCS and SMS, by the Linq API',
    section: 'channels_config.textrelay',
    routes: ['POST /textrelay'],
  },
  'channel-bizchat': {
    ...always,
    kind: 'channel',
    summary: 'WhatsApp, by WATI',
    section: 'channels_config.bizchat',
    routes: ['GET /bizchat', 'POST /bizchat'],
  },
  'channel-roomchat': {
    ...always,
    kind: 'channel',
    summary: 'Nextcloud Talk',
    section: 'channels_config.roomchat',
    routes: ['POST /roomchat'],
  },
  'channel-mailpush': {
    ...always,
    kind: 'channel',
    summary: 'Gmail, by push notifications',
    section: 'channels_config.mailpush',
    routes: ['POST /webhook/mailpush'],
  },
  'channel-telegram': {
    ...always,
    kind: 'channel',
    summary: 'Telegram',
    section: 'channels_config.telegram',
    target: 'messenger',
  },
  'channel-discord': {
    ...always,
    kind: 'channel',
    summary: 'Discord',
    section: 'channels_config.discord',
    target: 'community',
  },
  'channel-slack': {
    ...always,
    kind: 'channel',
    summary: 'Slack',
    section: 'channels_config.slack',
    target: 'workspace',
  },
  'channel-mattermost': { ...always, kind: 'channel', summary: 'Mattermost', section: 'channels_config.mattermost' },
  'channel-signal': { ...always, kind: 'channel', summary: 'Signal', section: 'channels_config.signal' },
  'channel-irc': { ...always, kind: 'channel', summary: 'IRC', section: 'channels_config.irc' },
  'channel-email': { ...always, kind: 'channel', summary: 'E-mail by IMAP and SMTP', section: 'channels_config.email' },
  'channel-voice-call': {
    ...always,
    kind: 'channel',
    summary: 'Voice calls',
    section: 'channels_config.voice_call',
    tools: ['voice_call'],
    routes: ['POST /voice/inbound', 'GET /ws/voice/:token'],
  },
  'channel-dingtalk': { ...always, kind: 'channel', summary: 'DingTalk', section: 'channels_config.dingtalk' },
  'channel-qq': { ...always, kind: 'channel', summary: 'QQ', section: 'channels_config.qq', routes: ['POST /qq'] },
  'channel-wecom': {
    ...always,
    kind: 'channel',
    summary: 'WeCom',
    section: 'channels_config.wecom',
    routes: ['GET /wecom', 'POST /wecom'],
  },
  'channel-line': {
    ...always,
    kind: 'channel',
    summary: 'LINE',
    section: 'channels_config.line',
    routes: ['POST /line'],
  },
  'channel-webhook': {
    ...always,
    kind: 'channel',
    summary: 'Generic webhook',
    section: 'channels_config.webhook',
    routes: ['POST /webhook/channel'],
  },
  'channel-fedchat': {
    flag: 'channel-fedchat',
    kind: 'channel',
    profile: 'standard',
    summary: 'Matrix, with end-to-end encryption',
    section: 'channels_config.fedchat',
    commands: ['fedchat keys', 'fedchat verify'],
    commandHelp: {
      'fedchat keys': { summary: 'Show the fingerprint of the device of the bot, and whether it is verified' },
      'fedchat verify': { summary: 'Show the emoji of verifications, and confirm or reject one', usage: '[<user id> [yes|no]]' },
    },
  },
  'channel-workchat': {
    flag: 'channel-workchat',
    kind: 'channel',
    profile: 'standard',
    summary: 'Lark and Feishu',
    section: 'channels_config.workchat',
    moreSections: ['channels_config.workchat_cn'],
    routes: ['POST /workchat', 'POST /workchat_cn'],
  },
  'channel-relaynet': {
    flag: 'channel-relaynet',
    kind: 'channel',
    profile: null,
    summary: 'Nostr',
    section: 'channels_config.relaynet',
  },
  'channel-chatapp-web': {
    flag: 'chatapp-web',
    kind: 'channel',
    profile: null,
    summary: 'WhatsApp, as a linked device of a phone',
    section: 'channels_config.chatapp',
    moreSections: ['channels_config.chatapp_web'],
    keys: [
      'session_path',
      'pair_phone',
      'allowed_groups',
      'dm_policy',
      'group_policy',
      'mention_only',
      'mention_names',
      'self_chat_mode',
      'read_receipts',
      'voice_replies',
      'stream_mode',
      'draft_update_interval_ms',
      'web_url',
      'web_root_key',
      'web_version',
    ],
  },
  'channel-voice-wake': {
    flag: 'voice-wake',
    kind: 'channel',
    profile: null,
    summary: 'Wake word on a local microphone',
    section: 'channels_config.voice_wake',
  },

  'hardware-boards': {
    flag: 'hardware',
    kind: 'hardware',
    profile: 'full',
    summary: 'USB and serial boards',
    section: 'peripherals',
    tools: [
      'gpio_write',
      'gpio_read',
      'board_a_flash',
      'device_read_code',
      'device_write_code',
      'device_exec',
      'hardware_board_info',
      'hardware_memory_map',
      'hardware_capabilities',
    ],
    commands: ['hardware discover', 'hardware introspect', 'peripheral add', 'peripheral list', 'peripheral flash'],
    commandHelp: {
      'hardware discover': { summary: 'List USB devices, the known boards among them, and all supported boards' },
      'hardware introspect': { summary: 'Open a serial port and identify the device on it', usage: '<path>' },
      'peripheral add': {
        summary: 'Add a board to the configuration; without arguments, show what was found and ask',
        usage: '[<board> <path|native|sim|host:port>]',
      },
      'peripheral list': { summary: 'List the configured and the connected boards' },
      'peripheral flash': {
        summary: 'Write firmware to a board',
        usage: '<board-or-alias>',
        options: {
          port: { value: '<path>', help: 'the serial port (default: where the board was found)' },
          image: { value: '<file>', help: 'a .uf2, .hex, .bin or .py file (default: firmware/<board> in the data directory)' },
        },
      },
    },
  },
  'hardware-adapter': {
    flag: 'hardware',
    kind: 'hardware',
    profile: 'full',
    summary: 'I2C, SPI and GPIO by an adapter, and data sheets',
    section: 'peripherals',
    keys: ['adapter'],
    tools: ['i2c_scan', 'i2c_read', 'i2c_write', 'spi_transfer', 'gpio_adapter', 'datasheet'],
  },
  'hardware-sbc': {
    flag: 'peripheral-sbc',
    kind: 'hardware',
    profile: null,
    summary: 'GPIO of single-board computers (Linux)',
    ...linux,
    tools: ['gpio_sbc_write', 'gpio_sbc_read', 'gpio_sbc_blink', 'sbc_system_info'],
  },
  'hardware-probe': {
    flag: 'probe',
    kind: 'hardware',
    profile: null,
    summary: 'Live chip info and memory over SWD',
    section: 'peripherals',
    keys: ['probe'],
    tools: ['hardware_memory_read'],
    commands: ['hardware info'],
    commandHelp: {
      'hardware info': {
        summary: "Show a chip's identity and memory, read live from it",
        options: { chip: { value: '<board-or-chip>', help: 'which chip it is (default: the configured board)' } },
      },
    },
  },
  'hardware-safety': {
    flag: 'safety',
    kind: 'hardware',
    profile: null,
    summary: "The robot's safety layers",
    file: 'robot.toml',
    tools: ['drive', 'sense', 'estop_reset'],
  },

  'sandbox-jail': { ...always, ...linux, kind: 'sandbox', summary: 'firejail (Linux)', backend: 'jail' },
  'sandbox-userns': {
    flag: 'sandbox-userns',
    kind: 'sandbox',
    profile: null,
    summary: 'User namespaces by bubblewrap',
    ...linux,
    backend: 'userns',
  },
  'sandbox-fsrestrict': {
    flag: 'sandbox-fsrestrict',
    kind: 'sandbox',
    profile: 'standard',
    summary: 'Landlock, Linux 5.13 or newer',
    ...linux,
    backend: 'fsrestrict',
  },
  'sandbox-seatbelt': { ...always, kind: 'sandbox', summary: 'sandbox-exec (macOS)', runsOn: ['macos'], backend: 'seatbelt' },
  'sandbox-container': {
    ...always,
    kind: 'sandbox',
    summary: 'Docker or Podman',
    ...unix,
    section: 'security.sandbox',
    keys: ['engine', 'image'],
    backend: 'container',
  },

  'observability-metrics': {
    flag: 'observability-metrics',
    kind: 'observability',
    profile: 'minimal',
    summary: 'Text-format metrics on GET /metrics',
    section: 'observability',
    keys: ['metrics_loopback_only'],
    backend: 'textmetrics',
  },
  'observability-otel': {
    flag: 'observability-otel',
    kind: 'observability',
    profile: 'full',
    summary: 'Trace export over OTLP/HTTP',
    section: 'observability',
    keys: ['otel_endpoint', 'otel_service_name'],
    backend: 'otel',
  },

  'plugins-wasm': {
    flag: 'plugins-wasm',
    kind: 'tool',
    profile: null,
    summary: 'WASM plugins as tools',
    section: 'plugins',
    namesItsTools: true,
    commands: ['plugin list', 'plugin install', 'plugin remove', 'plugin info'],
    commandHelp: {
      'plugin list': { summary: 'List installed plugins and their problems' },
      'plugin install': {
        summary: 'Install a plugin from a folder, a .tar.gz, or a .tar.gz at an https URL',
        usage: '<directory-or-archive-or-url>',
      },
      'plugin remove': { summary: 'Remove an installed plugin', usage: '<name>' },
      'plugin info': { summary: 'Show the manifest and the signer of an installed plugin', usage: '<name>' },
    },
  },
  dashboard: {
    flag: 'dashboard',
    kind: 'gateway',
    profile: 'standard',
    summary: 'A page in the browser: see what happens, talk to the agent, decide, replay',
    routes: [
      'GET /',
      'GET /assets/:file',
      'GET /api/overview',
      'GET /api/dashboard/sign-in',
      'POST /api/dashboard/sign-in',
      'POST /api/dashboard/passkey/start',
      'POST /api/dashboard/passkey/finish',
      'POST /api/dashboard/links',
      'GET /api/dashboard/session',
      'POST /api/dashboard/session',
      'DELETE /api/dashboard/session',
    ],
    commands: ['dashboard'],
    commandHelp: {
      dashboard: {
        summary: 'Print a link that signs a browser in once, within a minute',
        usage: '[--qr] [--role operator|client]',
        options: {
          qr: { help: 'show the link as a QR code, too, for a phone' },
          role: { value: 'operator|client', help: 'the permissions of the browser (default: operator)' },
        },
      },
    },
  },
  'web-push': {
    flag: 'web-push',
    kind: 'gateway',
    profile: 'standard',
    summary: 'Notifications in browsers about approvals that wait and messages that were given up',
    section: 'web_push',
    routes: [
      'GET /push-worker.js',
      'GET /api/web-push',
      'PUT /api/web-push',
      'DELETE /api/web-push',
      'POST /api/web-push/test',
      'GET /api/web-push/browsers',
      'DELETE /api/web-push/browsers/:device',
    ],
    commands: ['web-push list', 'web-push remove'],
    commandHelp: {
      'web-push list': { summary: 'List the devices whose browsers have notifications' },
      'web-push remove': { summary: 'Turn notifications off for a device', usage: '<device>' },
    },
  },
  webauthn: {
    flag: 'webauthn',
    kind: 'gateway',
    profile: null,
    summary: 'Passkeys',
    section: 'security.webauthn',
    routes: [
      'POST /api/webauthn/register/start',
      'POST /api/webauthn/register/finish',
      'POST /api/webauthn/auth/start',
      'POST /api/webauthn/auth/finish',
      'GET /api/webauthn/credentials',
      'DELETE /api/webauthn/credentials/:id',
      'GET /passkey',
      'POST /passkey/start',
      'POST /passkey/finish',
    ],
    commands: ['passkeys list', 'passkeys remove'],
    commandHelp: {
      'passkeys list': { summary: 'List registered passkeys with their users and the devices that registered them' },
      'passkeys remove': { summary: 'Remove a passkey', usage: '<credential-id>' },
    },
  },

  'store-postgres': {
    flag: 'store-postgres',
    kind: 'store',
    profile: 'full',
    summary: 'The store on PostgreSQL 15 or newer, in place of the embedded database',
    backend: 'postgres',
  },
} as const satisfies Record<string, Row>

export type CatalogueId = keyof typeof CATALOGUE
/** The key of a catalogue row, or the id of an embedder's feature. */
export type FeatureId = CatalogueId | `x-${string}`

/** The rows with their common type. */
export const ROWS: readonly (readonly [id: CatalogueId, row: Row])[] = Object.entries(CATALOGUE) as never

/** The row of a feature that its own package brings: what lists show of it, and the names that answer while it is not ready. */
export type OwnRow = Pick<Row, 'summary' | 'section' | 'tools' | 'namesItsTools' | 'routes' | 'commands' | 'commandHelp' | 'kinds'> & {
  readonly kind: FeatureKind
}

/** The row of the catalogue or, for an embedder's feature, its own one. */
export const rowOfFeature = ({ id, row }: { readonly id: string; readonly row?: OwnRow }): Row | OwnRow | undefined => rowOf(id) ?? row

export const rowOf = (id: string): Row | undefined => (Object.hasOwn(CATALOGUE, id) ? CATALOGUE[id as CatalogueId] : undefined)

const PROFILES: readonly Profile[] = ['minimal', 'standard', 'full']

/** Tells whether a shipped profile contains the feature of the row. */
export const isInProfile = (row: Row, profile: string): boolean => {
  const rank = PROFILES.indexOf(profile as Profile)
  return rank >= 0 && row.profile !== null && PROFILES.indexOf(row.profile) <= rank
}

/** The content of this bundle: the features of a profile and these additional ones, or only these without a profile. */
export interface BuildRecipe {
  readonly profile?: string
  readonly features: readonly string[]
  /** The folder in `dist/` when it is not the default. */
  readonly name?: string
}

/** Set by scripts/build.mjs; undefined when the sources run directly. */
declare const SLUICE_BUILD: BuildRecipe | undefined
const running: BuildRecipe = typeof SLUICE_BUILD === 'undefined' ? { profile: 'full', features: [] } : SLUICE_BUILD

/** Returns the command that builds this bundle with one more feature. It works in a clone of Sluice. */
export function buildHint(id: CatalogueId, { profile, features, name }: BuildRecipe = running): string {
  const row: Row = CATALOGUE[id]
  const list = [...features, row.flag ?? id].join(',')
  const words = [...(profile ? [profile, '--features', list] : ['--only', list]), ...(name ? ['--name', name] : [])]
  return ['npm run build --', ...words].join(' ')
}

/** Returns how to get a feature that this bundle leaves out, for the end of a sentence. No other place words this instruction. */
export function howToGet(id: CatalogueId, recipe: BuildRecipe = running): string {
  const row: Row = CATALOGUE[id]
  const build = `run '${buildHint(id, recipe)}' in a clone of Sluice`
  return row.profile === null ? build : `install the archive of the ${row.profile} profile, or ${build}`
}
