/** The description of every command of the core. Help, completions and docs/commands.md read it without loading a command. */
import { MODEL_TASKS, MODEL_TESTS } from '@sluice/agent/model-tests'
import { ROLES } from '@sluice/sdk'
import type { CommandDescription, CommandOption } from './command.ts'
import { DAEMON } from './daemon-command.ts'

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** The largest number of keys and values in one command; a section has fewer. */
const CONFIG_SET_ARGS_MAX = 64
/** The largest number of packages in one command; a build uses fewer. */
const NATIVE_PACKAGES_MAX = 32
/** The largest number of messages that one replay command names. */
const REPLAY_NUMBERS_MAX = 1000

const ROWS_MAX = 1000

const ROLE: CommandOption = { type: 'string', value: ROLES.join('|'), help: `the permissions of the device (default: ${ROLES[0]})` }
const ROLES_EXPLAINED =
  'An operator may do everything. A client may talk to the agent and sees only its own sessions, turns, approvals and memories: give an app or another person the role client.'

const LIMIT: CommandOption = { type: 'string', value: '<number>', help: 'the largest number of entries, 1 to 100000 (default: 50)' }
const LIMIT_ALL: CommandOption = { type: 'string', value: '<number>', help: 'the largest number of entries (default: all)' }

const DELIVERY_CHANNEL: CommandOption = { type: 'string', value: '<name>', help: 'only of this channel' }
const DELIVERY_PAGE = {
  channel: DELIVERY_CHANNEL,
  limit: LIMIT,
  before: { type: 'string', value: '<number>', help: 'only entries with a smaller number: the next page' },
} as const satisfies Record<string, CommandOption>
const words = (place: string): CommandOption => ({
  type: 'string',
  value: '<words>',
  help: `only with these words in ${place}, in any case`,
})
const deliveryState = (states: string): CommandOption => ({
  type: 'string',
  value: '<state>',
  help: `only in this state: ${states}; several are separated by commas`,
})
const replayFilter = (states: string): Record<string, CommandOption> => ({
  state: { type: 'string', value: '<state>', help: `every entry in this state, oldest first, at most 10000: ${states}` },
  dead: { type: 'boolean', help: 'the same as --state dead' },
  since: { type: 'string', value: '<time>', help: 'only entries since this time: 90m, 6h, 2d or a date' },
  channel: DELIVERY_CHANNEL,
})

const SESSION_CHANNEL: CommandOption = { type: 'string', value: '<name>', help: 'of this channel' }
const SESSION_SENDER: CommandOption = {
  type: 'string',
  value: '<sender>',
  help: 'with --channel: of this sender, in the notation of the channel',
}

const PROVIDER_OPTION: CommandOption = {
  type: 'string',
  value: '<kind|number>',
  help: 'only endpoints of this kind, or one entry: 0 is [provider], 1 its first fallback',
}

const APPROVAL_KEY = { usage: '<run> <step>', argsMin: 2, argsMax: 2 } as const

const MEMORY_OWNER: CommandOption = {
  type: 'string',
  value: '<owner>',
  help: 'device:<id>, channel:<channel>/<account>/<sender>, sop:<name>, cli, local, shared or unowned',
}

const SERVICE_SCOPE: CommandOption = {
  type: 'string',
  value: 'system|user',
  help: 'of the machine or of the calling user (default: system for root, user for others)',
}

const DESCRIPTIONS = [
  {
    name: 'setup',
    summary: 'Choose the provider, key and model of the agent, test them and write the configuration',
    more: 'At a terminal it asks for what the options do not say. With --yes, --json or without a terminal it asks nothing. A key in the usual variable of the provider is used without being copied; a key that is typed or read by an option is stored encrypted. Nothing is changed before the last question.',
    options: {
      provider: { type: 'string', value: '<kind>', help: 'the kind of the provider, such as openai, anthropic or ollama' },
      model: { type: 'string', value: '<name>', help: 'the name of the model' },
      'base-url': { type: 'string', value: '<url>', help: "the address of the endpoint (default: the provider's own)" },
      'api-key-stdin': { type: 'boolean', help: 'read the key from standard input' },
      'api-key-env': { type: 'string', value: '<variable>', help: 'read the key from this environment variable' },
      'skip-test': { type: 'boolean', help: 'write the configuration without a request to the model' },
      yes: { type: 'boolean', short: 'y', help: 'ask nothing' },
    },
  },
  DAEMON,
  {
    name: 'stop',
    summary: 'Stop the daemon; it accepts nothing more and lets running turns end',
    more: 'What has not ended within ten seconds is stored, and the next start resumes it. A service of systemd or launchd is stopped there, so that nothing starts it again. Succeeds if no daemon runs, and fails while one holds the data and does not answer; --wait gives it two minutes to start or to end.',
    options: { wait: { type: 'boolean', help: 'return once the daemon has stopped and another program may use its data' } },
  },
  {
    name: 'restart',
    summary: 'Stop the daemon and start it again, with the installed program and the configuration file as they are now',
    more: 'The daemon keeps its process, its terminal, its options and its environment. A service of systemd or launchd is restarted there. A configuration that is not valid refuses the restart, and the daemon goes on. Returns once the daemon answers again.',
  },
  {
    name: 'reload',
    summary: 'Make the daemon read the configuration file again now, and show what has changed',
    more: 'The daemon watches the file and takes changes over by itself. This command is for a file that the agent may write, whose changes wait for an operator, and for scripts that must know whether a change is in force.',
  },
  {
    name: 'logs',
    remote: true,
    summary: 'Print the last lines of the log of the running daemon',
    more: 'The daemon keeps about a thousand lines in memory. Older ones are where its log is written to: a terminal, a file, or the journal of the service.',
    options: {
      follow: { type: 'boolean', short: 'f', help: 'print new lines as they are written, until Ctrl-C' },
      lines: { type: 'string', short: 'n', value: '<number>', help: 'the largest number of lines, 0 to 1000 (default: 50)' },
      level: { type: 'string', value: LOG_LEVELS.join('|'), help: 'only lines of this level and above (default: debug)' },
    },
  },
  {
    name: 'status',
    remote: true,
    summary: 'Show whether the daemon is running, its problems, its health and its queues',
    more: 'Exits with 0 if the daemon runs, and with 1 if it does not. With --check, for scripts, it exits with 3 while a problem stops work, such as a provider that does not answer, and with 4 while there is another one, such as an old backup.',
    options: { check: { type: 'boolean', help: 'exit with 3 or 4 while there is a problem' } },
  },
  { name: 'doctor', summary: 'Check this installation and say how to fix each problem' },
  {
    name: 'models test',
    remote: true,
    summary: 'Try what a model can do: text, streaming, tool calls, an image',
    more: 'The requests are real and cost what the provider takes for them. They offer a tool of their own, so no tool of yours runs. Exits with 1 if a test has failed; what a model does not support is no failure.',
    options: {
      provider: {
        ...PROVIDER_OPTION,
        help: 'the endpoints of this kind, or one entry (0 is [provider], 1 its first fallback, agents.NAME.provider that of an agent); default: all, or 0 with --model',
      },
      model: { type: 'string', value: '<name>', help: 'another model of the same endpoint' },
      tasks: { type: 'boolean', help: `run ten short tasks of an agent instead of the tests: ${MODEL_TASKS.join(', ')}` },
      only: {
        type: 'string',
        value: '<tests>',
        help: `only these tests, or tasks with --tasks, separated by commas: ${MODEL_TESTS.join(', ')}`,
      },
    },
  },
  {
    name: 'models',
    remote: true,
    summary: 'List the models that each endpoint of the configuration offers, and mark the ones in use',
    options: {
      provider: PROVIDER_OPTION,
      match: { type: 'string', value: '<text>', help: 'only models with this text in their name' },
    },
  },
  {
    name: 'backup',
    summary: 'Write a verified backup of the data directory, also while the daemon runs',
    more: 'The name of the file ends in .tar, or in .tar.age if the backup is encrypted. Without a file, the backup is written to the folder of [backup] as its settings say, and older ones are deleted. Secrets in plain text and the key of the encrypted ones are left out unless --with-secrets is given. With --encrypt, the passphrase is read from --passphrase-file, from SVC_BACKUP_PASSPHRASE, or typed.',
    usage: '[file]',
    argsMax: 1,
    options: {
      'with-secrets': { type: 'boolean', help: 'include the secrets and the key that encrypts them' },
      encrypt: { type: 'boolean', help: 'encrypt the backup with a passphrase, in the format of age' },
      'passphrase-file': { type: 'string', value: '<file>', help: 'encrypt with the first line of this file' },
    },
  },
  {
    name: 'restore',
    summary: 'Replace the data directory by a backup, while no daemon runs; nothing is sent again',
    more: 'The backup is checked before anything changes, and the old data is kept next to the new. Work that was unfinished in the backup may have been done since: its messages become dead letters, its replies ambiguous, and its turns and runs end. Replay what was not done.',
    usage: '<file>',
    argsMin: 1,
    argsMax: 1,
    options: {
      check: { type: 'boolean', help: 'only check the backup' },
      'skip-links': { type: 'boolean', help: 'leave out links that lead out of the data directory' },
      'passphrase-file': { type: 'string', value: '<file>', help: 'decrypt with the first line of this file' },
    },
  },
  {
    name: 'upgrade',
    summary: 'Check whether this program can take the data directory over, or go back to the state before an upgrade',
    more: 'Run the check with the new program, before the restart; it changes nothing. The way back needs a stopped daemon. It makes the build before this one the installed program again, if an installer has kept it. A database with which that program can go on stays as it is. Otherwise the copy that the start of the new release made takes its place, and the newer one is kept beside it: messages and conversations since the upgrade are then missing, and replies since then may be sent again.',
    options: {
      check: { type: 'boolean', help: 'show what the restart with this program will do, and exit with 1 if it cannot' },
      rollback: {
        type: 'boolean',
        help: 'go back to the program before the upgrade, and where it needs that, to the copy of the database of that time',
      },
    },
  },
  {
    name: 'store migrate',
    summary: 'Copy everything between the embedded database and PostgreSQL, while no daemon runs',
    more: 'The source is not changed. The copy is read again and compared with the source, and an interrupted one goes on where it stopped. Afterwards, change [store] backend as the last line says: a daemon on each of the two would do the same work twice.',
    options: {
      to: { type: 'string', value: 'postgres|sqlite', help: 'where the data goes' },
      url: {
        type: 'string',
        value: '<url>',
        help: 'the server, in place of [store] url and SVC_STORE_URL; without a password, which others would see',
      },
      restart: { type: 'boolean', help: 'throw away an unfinished copy and begin again' },
    },
  },
  {
    name: 'store recovered',
    summary: 'After a point-in-time recovery of PostgreSQL: repeat nothing that may have been done since',
    more: 'Run it before the first daemon starts on the recovered data. Replies that were not sent at that time become ambiguous, and messages dead letters; turns, approvals and runs end. Replay what was not done.',
    options: { until: { type: 'string', value: '<time>', help: 'the time whose state the data has: a date with a time zone' } },
  },
  { name: 'features', remote: true, summary: 'List every feature: compiled in, configured, running, and how to get it' },

  { name: 'config check', summary: 'Validate the configuration file' },
  {
    name: 'config get',
    loadsNamedFeatures: true,
    summary: 'Print the effective configuration, or one value of it',
    usage: '[key]',
    argsMax: 1,
    options: { source: { type: 'boolean', help: 'show where each value comes from: the file, a variable or the default' } },
  },
  {
    name: 'config set',
    summary: 'Change values in the file, all or none; comments stay, secrets are encrypted',
    more: 'If the last key has no value, its value is read from standard input; at a terminal, only a secret is asked for, without echo. A single key whose secret is in the file in plain text has that secret encrypted instead.',
    usage: '<key> [value] [<key> <value>]…',
    argsMin: 1,
    argsMax: CONFIG_SET_ARGS_MAX,
    options: { unset: { type: 'boolean', help: 'remove the keys instead' } },
  },
  { name: 'config seal', summary: 'Encrypt every secret that the file holds in plain text' },
  { name: 'config schema', summary: 'Print the JSON Schema of the configuration file' },
  { name: 'config init', summary: 'Write a commented starter configuration' },
  {
    name: 'secrets rotate',
    summary: 'Encrypt every stored secret with a new key, also while the daemon runs',
    more: 'Both keys work until all secrets are encrypted with the new one. If it is interrupted, nothing is lost: run it again. Backups from before the rotation need their own key: make a new one afterwards.',
  },

  { name: 'pair new', remote: true, summary: 'Print a one-time pairing code', more: ROLES_EXPLAINED, options: { role: ROLE } },
  {
    name: 'pair token',
    remote: true,
    summary: 'Print a new bearer token, and nothing else',
    more: ROLES_EXPLAINED,
    options: {
      role: ROLE,
      name: { type: 'string', value: '<name>', help: 'the name in the list of devices' },
      'expires-days': { type: 'string', value: '<days>', help: 'refuse the token after this number of days (default: never)' },
    },
  },
  { name: 'pair list', remote: true, summary: 'List paired devices', options: { limit: LIMIT_ALL } },
  {
    name: 'pair revoke',
    remote: true,
    summary: "Revoke a device's token and the passkeys it registered, in force at once",
    usage: '<device-id>',
    argsMin: 1,
    argsMax: 1,
    options: { 'keep-passkeys': { type: 'boolean', help: 'keep the passkeys it registered, and the sign-ins with them' } },
  },

  {
    name: 'agent',
    remote: true,
    summary: 'Run one agent turn, in the daemon or, if none runs, in this process',
    options: {
      message: { type: 'string', short: 'm', value: '<text>', help: 'the message (default: standard input)' },
      session: { type: 'string', short: 's', value: '<name>', help: 'continue a named session' },
      agent: { type: 'string', short: 'a', value: '<name>', help: 'the agent that answers (default: main)' },
    },
  },

  {
    name: 'chat',
    summary: 'Talk to the agent in the terminal: a conversation with the running daemon',
    more: 'Answers appear block by block as they are written, at a terminal without the marks of their Markdown. A tool call that needs a person is shown, and approved with y or denied with any other answer. Ctrl-C stops the running turn; Ctrl-D leaves, and a running turn goes on. The last line says how to go on with the conversation.',
    options: {
      session: {
        type: 'string',
        short: 's',
        value: '<name>',
        help: 'go on with this conversation, or begin one of this name (default: a new one)',
      },
      agent: { type: 'string', short: 'a', value: '<name>', help: 'the agent that answers (default: main)' },
    },
  },

  {
    name: 'webhook send',
    remote: true,
    summary: 'Post a message to a running daemon as its operator or as a chat platform, or an event as a service such as GitHub',
    more: 'With --url, the message is sent as the device of the token, and with the X-Webhook-Secret of the configuration or of SVC_GATEWAY_WEBHOOK_SECRET.',
    usage: '[message]',
    argsMax: 1,
    options: {
      session: { type: 'string', short: 's', value: '<name>', help: 'X-Session-Id' },
      'idempotency-key': { type: 'string', value: '<key>', help: 'X-Idempotency-Key' },
      async: { type: 'boolean', help: 'do not wait for the reply (Prefer: respond-async)' },
      channel: {
        type: 'string',
        value: '<name>',
        help: "send it as this channel's platform would, signed with the configured secret; the reply is really sent",
      },
      sender: {
        type: 'string',
        value: '<sender>',
        help: 'with --channel: the sender, who really gets the reply (default: the first of the allowlist)',
      },
      to: {
        type: 'string',
        value: '<conversation>',
        help: 'with --channel: the conversation, such as a room, on platforms that reply to a conversation',
      },
      id: {
        type: 'string',
        value: '<id>',
        help: "with --channel: the platform's message id; with --path: the delivery id (default: a new one)",
      },
      wait: { type: 'string', value: '<seconds>', help: 'with --channel: how long to follow the message (default: 30; 0: not at all)' },
      'bad-signature': { type: 'boolean', help: 'with --channel or --path: send a wrong signature, to see it refused' },
      path: {
        type: 'string',
        value: '<path>',
        help: 'send an event to the triggers of procedures on this path, with the proof that they demand',
      },
      as: { type: 'string', value: '<sender>', help: 'with --path: the auth to sign for, such as github (default: that of the trigger)' },
      event: { type: 'string', value: '<name>', help: 'with --path: the event, such as push, in the header of the sender' },
      body: { type: 'string', value: '<file>', help: 'with --path: the body; - is standard input (default: a sample)' },
      secret: {
        type: 'string',
        value: '<name>',
        help: 'with --path: the name of a secret in [sop.secrets]; it also chooses among several triggers (default: that of the trigger)',
      },
    },
  },
  {
    name: 'webhook check',
    summary: 'Check the webhook of each configured channel, and the way to it from outside, or the triggers on one path',
    more: 'With a path, it checks the secrets of the triggers on that path, or tells why they would refuse the request in a file.',
    usage: '[path]',
    argsMax: 1,
    options: {
      'public-url': { type: 'string', value: '<url>', help: 'where platforms reach this daemon (default: [gateway] public_url)' },
      request: { type: 'string', value: '<file>', help: 'with a path: a captured request: header lines, an empty line, the body' },
    },
  },

  { name: 'channels list', remote: true, summary: 'List the configured channels: their platform, their state and what is missing' },
  {
    name: 'channels link',
    remote: true,
    summary: 'Make a channel another device of an account: shows a code until a person has confirmed it on the phone',
    usage: '<channel>',
    argsMin: 1,
    argsMax: 1,
    options: { pair: { type: 'string', value: '<phone>', help: 'show a code to type into the phone with this number, not a QR code' } },
  },
  {
    name: 'channels unlink',
    remote: true,
    summary: 'Remove the device of a channel from its account, and delete its keys',
    usage: '<channel>',
    argsMin: 1,
    argsMax: 1,
  },

  {
    name: 'inbox list',
    remote: true,
    summary: 'List messages received over channels, newest first',
    options: {
      state: deliveryState('pending, running, done, dead, limited, discarded'),
      sender: words('the sender'),
      text: words('the text or the error'),
      ...DELIVERY_PAGE,
    },
  },
  {
    name: 'inbox show',
    remote: true,
    summary: 'Show one message: its request, its turn and its replies',
    usage: '<number>',
    argsMin: 1,
    argsMax: 1,
    options: { raw: { type: 'boolean', help: 'the bytes of the request and nothing else' } },
  },
  {
    name: 'inbox replay',
    remote: true,
    summary: 'Run messages that have ended once more, each in a new turn and whatever the limits',
    usage: '[number...]',
    argsMax: REPLAY_NUMBERS_MAX,
    options: replayFilter('dead, limited or both as dead,limited'),
  },
  {
    name: 'inbox discard',
    remote: true,
    summary: 'Discard messages that are dead or limited: they no longer count as dead letters',
    usage: '<number...>',
    argsMin: 1,
    argsMax: REPLAY_NUMBERS_MAX,
  },
  { name: 'inbox dead', remote: true, summary: 'List messages that ran out of attempts', options: DELIVERY_PAGE },

  {
    name: 'outbox list',
    remote: true,
    summary: 'List messages to send over channels, newest first',
    options: {
      state: deliveryState('queued, sending, failed, sent, ambiguous, dead, discarded'),
      to: words('the receiver'),
      text: words('the text or the error'),
      ...DELIVERY_PAGE,
    },
  },
  { name: 'outbox show', remote: true, summary: 'Show one message to send, and its turn', usage: '<number>', argsMin: 1, argsMax: 1 },
  {
    name: 'outbox replay',
    remote: true,
    summary: 'Send messages that are dead or ambiguous once more; an ambiguous one may arrive twice',
    usage: '[number...]',
    argsMax: REPLAY_NUMBERS_MAX,
    options: replayFilter('dead, ambiguous or both as dead,ambiguous'),
  },
  {
    name: 'outbox discard',
    remote: true,
    summary: 'Discard messages that are dead or ambiguous: they no longer count as dead letters',
    usage: '<number...>',
    argsMin: 1,
    argsMax: REPLAY_NUMBERS_MAX,
  },
  {
    name: 'outbox dead',
    remote: true,
    summary: 'List messages that ran out of attempts, and messages that may or may not have been sent',
    options: DELIVERY_PAGE,
  },

  {
    name: 'limits list',
    remote: true,
    summary: 'List the clients and conversations that a limit of [limits] holds back',
    options: { limit: LIMIT_ALL },
  },
  {
    name: 'limits shares',
    remote: true,
    summary: 'List the shares of [limits] that clients hold now: turns, streams, downloads',
  },
  {
    name: 'limits reset',
    remote: true,
    summary: 'Forget what the limits have counted for a client, and end the pause of a conversation',
    usage: '<client>',
    argsMin: 1,
    argsMax: 1,
  },

  {
    name: 'cluster status',
    remote: true,
    summary:
      'List the nodes that share the database, with their state, shards and other leases, their MCP programs, and what differs between their folders',
  },
  {
    name: 'cluster drain',
    remote: true,
    summary: 'Ask a node to own nothing, also after a restart; what runs there ends first',
    usage: '<node>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'cluster undrain',
    remote: true,
    summary: 'Let a node own its share again',
    usage: '<node>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'cluster rebalance',
    remote: true,
    summary: 'Make all nodes compare their shards with their share now',
  },
  {
    name: 'cluster sign',
    summary: 'Show what in the shared database is not signed, sign it with secret.key, and refuse unsigned rows from then on',
    more: 'It covers the configuration, devices, pairing codes, sign-in links, and what features keep, such as accepted procedures and tools. Run it once after every node was upgraded, and again for a row that a node refuses. Without names, it signs everything that it shows. It asks first.',
    usage: '[row]…',
    argsMax: ROWS_MAX,
    options: {
      remove: { type: 'boolean', help: 'delete the named rows instead' },
      yes: { type: 'boolean', help: 'do not ask' },
    },
  },

  {
    name: 'sessions list',
    remote: true,
    summary: 'List conversations of devices and channels, most recently active first',
    options: {
      channel: SESSION_CHANNEL,
      sender: SESSION_SENDER,
      limit: LIMIT,
      cursor: { type: 'string', value: '<cursor>', help: 'the next page: the cursor that the previous page printed' },
    },
  },
  {
    name: 'sessions find',
    remote: true,
    summary: 'Find words in the messages of conversations, the most recently active conversation first',
    more: 'Looks at what people wrote and what the agent answered, in any case, without results of tools. Each turn is printed once, with the words around those that were found. With --url, the audit log records each conversation of another client that is printed.',
    usage: '<words>',
    argsMin: 1,
    argsMax: 1,
    options: {
      channel: SESSION_CHANNEL,
      sender: SESSION_SENDER,
      limit: LIMIT,
      cursor: { type: 'string', value: '<cursor>', help: 'the next page: the cursor that the previous page printed' },
    },
  },
  {
    name: 'sessions show',
    remote: true,
    summary: 'Show a conversation and its last messages',
    usage: '<id>',
    argsMin: 1,
    argsMax: 1,
    options: { limit: { type: 'string', value: '<number>', help: 'the largest number of messages, 1 to 500 (default: 50)' } },
  },
  {
    name: 'sessions export',
    remote: true,
    summary: 'Print every message of a conversation: a JSON object a line, or with --json one document',
    usage: '<id>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'sessions erase',
    remote: true,
    summary: 'Erase a conversation, or with --channel and --sender a person: all their conversations and memories',
    more: 'Erases the text of the conversation and the contents of its turns, messages, replies and approvals; none of it stays in the database file or its log. The command lists copies that were made before an upgrade: delete them too. The audit log records the erasure.',
    usage: '[id]',
    argsMax: 1,
    options: { channel: SESSION_CHANNEL, sender: SESSION_SENDER },
  },

  {
    name: 'turns list',
    remote: true,
    summary: 'List the turns that run and those that have ended, the latest end first',
    options: {
      status: { type: 'string', value: '<status>', help: 'only with this status: queued, running, done, failed, aborted' },
      channel: { type: 'string', value: '<channel>', help: 'only turns from this channel or other source, such as webhook or sop' },
      sender: { type: 'string', value: '<words>', help: 'only turns with these words in the name of their sender' },
      agent: { type: 'string', value: '<name>', help: 'only turns of this agent' },
      error: { type: 'string', value: '<words>', help: 'only turns with these words in their error' },
      since: { type: 'string', value: '<time>', help: 'only turns that ended since this time: 90m, 6h, 2d or a date' },
      limit: LIMIT,
      cursor: { type: 'string', value: '<cursor>', help: 'the next page: the cursor that the previous page printed' },
    },
  },
  {
    name: 'turns show',
    remote: true,
    summary: 'Show a turn with its timeline: its model and tool calls, questions to people, and replies',
    usage: '<id>',
    argsMin: 1,
    argsMax: 1,
  },

  {
    name: 'approvals list',
    remote: true,
    summary: 'List approval requests and their decisions, newest first',
    options: {
      state: { type: 'string', value: '<state>', help: 'only in this state: pending, approved, rejected, expired, cancelled' },
      limit: LIMIT,
    },
  },
  { name: 'approvals show', remote: true, summary: 'Show one approval: its request, its prompts and its state', ...APPROVAL_KEY },
  { name: 'approvals approve', remote: true, summary: 'Approve; the first decision counts, wherever it is made', ...APPROVAL_KEY },
  {
    name: 'approvals reject',
    remote: true,
    summary: 'Reject, with feedback for the waiting run',
    usage: '<run> <step> [feedback]',
    argsMin: 2,
    argsMax: 3,
  },

  { name: 'sop list', remote: true, summary: 'List the procedures and their triggers', options: { limit: LIMIT_ALL } },
  { name: 'sop validate', remote: true, summary: 'Check every procedure, and print the place of each problem' },
  {
    name: 'sop waiting',
    remote: true,
    summary: 'List procedures in the workspace that wait for an operator, or show the files of one',
    more: 'The agent can write in the workspace: a new or changed procedure there is loaded only after an operator has accepted it.',
    usage: '[folder]',
    argsMax: 1,
    options: { limit: LIMIT_ALL },
  },
  {
    name: 'sop accept',
    remote: true,
    summary: 'Accept a procedure in the workspace as it is; the hash identifies the content that you have read',
    usage: '<folder> <hash>',
    argsMin: 2,
    argsMax: 2,
  },
  {
    name: 'sop adopt',
    remote: true,
    summary: 'Move accepted procedures out of the workspace, to a folder that the agent cannot write',
    usage: '[folder]',
    argsMax: 1,
  },
  {
    name: 'sop show',
    remote: true,
    summary: 'Show one procedure: its triggers, its steps, and the steps that wait for a person',
    usage: '<name>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'sop simulate',
    remote: true,
    summary: 'Walk an event through triggers, conditions, steps, approvals and costs, without running or storing anything',
    usage: '[name]',
    argsMax: 1,
    options: { event: { type: 'string', value: '<file>', help: 'the event: {"source", "topic", "payload"} as JSON; - is standard input' } },
  },
  {
    name: 'sop run',
    remote: true,
    summary: 'Start a procedure by hand; the daemon works on it',
    usage: '<name>',
    argsMin: 1,
    argsMax: 1,
    options: {
      payload: { type: 'string', value: '<json>', help: 'the input of its first step; - is standard input' },
      wait: { type: 'string', value: '<seconds>', help: 'how long to follow the run (default: 0)' },
    },
  },
  {
    name: 'sop runs',
    remote: true,
    summary: 'List runs, newest first',
    options: {
      sop: { type: 'string', value: '<name>', help: 'only of this procedure' },
      active: { type: 'boolean', help: 'only runs that have not ended' },
      status: { type: 'string', value: '<status>', help: 'only runs in this state, such as waiting, failed or expired' },
      limit: LIMIT,
      before: { type: 'string', value: '<run>', help: 'only older runs: the next page' },
    },
  },
  {
    name: 'sop status',
    remote: true,
    summary: 'Show one run: its trigger, and the result of each step',
    usage: '<run>',
    argsMin: 1,
    argsMax: 1,
  },
  { name: 'sop cancel', remote: true, summary: 'Cancel a run', usage: '<run> [reason]', argsMin: 1, argsMax: 2 },
  {
    name: 'sop replay',
    remote: true,
    summary: 'Start the procedure of a failed, cancelled or expired run once more with the same event',
    more: 'The new run begins at the first step, so that what the earlier run has done may be done once more. A run is replayed once: another replay within three days names the same new run, which can be replayed itself when it fails.',
    usage: '<run>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'sop audit',
    remote: true,
    summary: 'Show the audit log, and check that no record was changed',
    options: {
      run: { type: 'string', value: '<run>', help: 'only of this run' },
      sop: { type: 'string', value: '<name>', help: 'only of this procedure' },
      limit: { type: 'string', value: '<number>', help: 'the number of records to show, 0 to 100000 (default: 50)' },
    },
  },

  { name: 'rooms list', remote: true, summary: 'List the rooms that have a rule or a conversation of all their people' },
  {
    name: 'rooms show',
    remote: true,
    summary: 'Show the rule of a room, and what is in force there',
    usage: '<room>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'rooms set',
    remote: true,
    summary: 'Change the rule of a room',
    more: 'A rule has session (shared or person), agent, people, respond (mention, always, never or judge), tools, turns_per_hour, usd_per_day and language. Lists have commas; an empty value removes a part: sluice rooms set telegram/700100/-100200 respond=judge language=German people=',
    usage: '<room> <name>=<value> ...',
    argsMin: 2,
    argsMax: 16,
  },
  {
    name: 'rooms erase',
    remote: true,
    summary: 'Erase a room: its rule, and the conversations that its people share, with their memories and files',
    usage: '<room>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'rooms try',
    remote: true,
    summary: 'Play a transcript against the rule of a room, without running, storing or sending anything',
    more: 'The transcript has one JSON object per line: {"sender": "7", "text": "hello", "addressed": "mention"}. `addressed` is mention, reply, command, or overheard, which is the default. Changes of the rule, as of `rooms set`, are tried and not kept.',
    usage: '<room> [<name>=<value> ...]',
    argsMin: 1,
    argsMax: 17,
    options: { transcript: { type: 'string', value: '<file>', help: 'the transcript; - is standard input' } },
  },

  {
    name: 'people link',
    remote: true,
    summary: 'Print a code that links this account with another one of yours, or type the code of the other account',
    more: 'Write `/link <code>` to the agent from your account in a chat, within ten minutes. Or write /link there, and give the code to this command. Linked accounts share memories and limits; docs/people.md.',
    usage: '[code]',
    argsMax: 1,
  },
  { name: 'people list', remote: true, summary: 'List the people whose accounts are linked' },
  {
    name: 'people show',
    remote: true,
    summary: 'Show the accounts that are linked with one',
    usage: '<account>',
    argsMin: 1,
    argsMax: 1,
  },
  {
    name: 'people unlink',
    remote: true,
    summary: 'Separate an account from the others of its person, at once',
    usage: '<account>',
    argsMin: 1,
    argsMax: 1,
  },

  {
    name: 'memory list',
    summary: 'List the memories of the agent, each with its owner',
    remote: true,
    options: { owner: MEMORY_OWNER, limit: LIMIT_ALL },
  },
  {
    name: 'memory show',
    remote: true,
    summary: 'Show one memory',
    usage: '<key>',
    argsMin: 1,
    argsMax: 1,
    options: { owner: MEMORY_OWNER },
  },
  {
    name: 'memory forget',
    remote: true,
    summary: 'Remove one memory, or all memories of one owner',
    usage: '[key]',
    argsMax: 1,
    options: { owner: MEMORY_OWNER, all: { type: 'boolean', help: 'with --owner: every memory of this owner' } },
  },
  {
    name: 'memory assign',
    remote: true,
    summary: 'Give memories to an owner, or to all clients',
    more: 'Without --from, the memories that an earlier release wrote without an owner. A memory stays with its owner if the new owner already uses its key.',
    usage: '[owner]',
    argsMax: 1,
    options: {
      shared: { type: 'boolean', help: 'to all clients: each may recall the memories, none may change them' },
      from: { ...MEMORY_OWNER, help: 'the present owner (default: unowned)' },
      key: { type: 'string', value: '<key>', help: 'only this memory' },
    },
  },

  {
    name: 'mcp serve',
    remote: true,
    summary: 'Let a program use this agent by the Model Context Protocol, over standard input and output',
    more: 'For the configuration of other agents: their command is `sluice` with the arguments `mcp serve`. Needs a running daemon with `enabled = true` under `[mcp.serve]`.',
  },
  {
    name: 'service install',
    summary: 'Run the daemon as a service of systemd or launchd, and start it',
    more: 'A system service has its own user and keeps its data in /var/lib/sluice unless --data-dir names another place. Run the command again after you change the address, the sandbox or the hardware in the configuration: the service is confined as far as these allow.',
    options: {
      scope: SERVICE_SCOPE,
      print: { type: 'boolean', help: 'print the files of the service and change nothing' },
      'no-start': { type: 'boolean', help: 'write the files, and start the service with the machine only' },
    },
  },
  { name: 'service status', summary: 'Show whether the service is installed and running', options: { scope: SERVICE_SCOPE } },
  {
    name: 'service uninstall',
    summary: 'Stop the service and remove its files; the data directory stays',
    options: { scope: SERVICE_SCOPE },
  },
  {
    name: 'native install',
    summary: 'Install the native packages that this build can use, at the versions that it was tested with',
    more: 'Uses npm. Without names, it installs every package of the build. Packages that are compiled need Python 3, make and a C++ compiler; the others work without them.',
    usage: '[package]...',
    argsMax: NATIVE_PACKAGES_MAX,
  },
  { name: 'completion', summary: 'Print a completion script for bash, zsh or fish', usage: '<shell>', argsMin: 1, argsMax: 1 },
] as const satisfies readonly CommandDescription[]

/** The names of the core's commands. */
export type CommandName = (typeof DESCRIPTIONS)[number]['name']

/** Every command of the core, in the order of the help text. */
export const COMMANDS: readonly (CommandDescription & { readonly name: CommandName })[] = DESCRIPTIONS
