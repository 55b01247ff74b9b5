/** The commands on conversations, as data. */
import type { CliCommand, CliOption } from './command-table.ts'

const channel: CliOption = { type: 'string', value: '<name>', help: 'of this channel' }
const sender: CliOption = { type: 'string', value: '<sender>', help: 'with --channel: of this sender, as the channel names them' }

export const SESSION_COMMANDS: readonly CliCommand[] = [
  {
    name: 'sessions list',
    summary: 'List conversations of devices and channels, most recently active first',
    options: {
      channel,
      sender,
      limit: { type: 'string', value: '<number>', help: 'how many at most, 1 to 500 (default: 50)' },
      cursor: { type: 'string', value: '<cursor>', help: 'the next page, as the page before names it' },
    },
    load: async () => ({ run: (await import('./commands/sessions.ts')).list }),
  },
  {
    name: 'sessions show',
    summary: 'Show a conversation and what was said last in it',
    usage: '<id>',
    argsMin: 1,
    argsMax: 1,
    options: { limit: { type: 'string', value: '<number>', help: 'how many messages, 1 to 500 (default: 50)' } },
    load: async () => ({ run: (await import('./commands/sessions.ts')).show }),
  },
  {
    name: 'sessions export',
    summary: 'Print everything that was said in a conversation: a JSON object a line, or with --json one document',
    usage: '<id>',
    argsMin: 1,
    argsMax: 1,
    load: async () => ({ run: (await import('./commands/sessions.ts')).exportOne }),
  },
  {
    name: 'sessions erase',
    summary: 'Erase a conversation, or with --channel and --sender a person: all their conversations and memories',
    more: 'What was said goes, and the contents of turns, messages, replies and approvals; nothing of it is left in the database file or its log. Copies made before an upgrade are named: delete them, too. The audit log records that it was done.',
    usage: '[id]',
    argsMax: 1,
    options: { channel, sender },
    load: async () => ({ run: (await import('./commands/sessions.ts')).erase }),
  },
]
