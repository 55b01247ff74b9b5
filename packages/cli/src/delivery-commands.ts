/** The commands on inbox and outbox, as data. */
import type { CliCommand, CliOption } from './command-table.ts'

const channel: CliOption = { type: 'string', value: '<name>', help: 'only of this channel' }

const PAGE = {
  channel,
  limit: { type: 'string', value: '<number>', help: 'how many at most, 1 to 500 (default: 50)' },
  before: { type: 'string', value: '<number>', help: 'only those with a smaller number: the next page' },
} as const satisfies Record<string, CliOption>

const state = (states: string): CliOption => ({ type: 'string', value: '<state>', help: `only in this state: ${states}` })

/** What a bulk replay selects. */
const selection = (states: string) =>
  ({
    state: { type: 'string', value: '<state>', help: `all in this state, oldest first, at most 10000: ${states}` },
    dead: { type: 'boolean', help: 'the same as --state dead' },
    since: { type: 'string', value: '<time>', help: 'only those since then: 90m, 6h, 2d or a date' },
  }) as const satisfies Record<string, CliOption>

/** Numbers one command takes. */
const NUMBERS_MAX = 1000

export const DELIVERY_COMMANDS: readonly CliCommand[] = [
  {
    name: 'inbox list',
    summary: 'List messages that came in over channels, newest first',
    options: { state: state('pending, running, done, dead'), ...PAGE },
    load: async () => ({ run: (await import('./commands/inbox.ts')).list }),
  },
  {
    name: 'inbox show',
    summary: 'Show one message: its request, its turn and its replies',
    usage: '<number>',
    argsMin: 1,
    argsMax: 1,
    options: { raw: { type: 'boolean', help: 'the bytes of the request and nothing else' } },
    load: async () => ({ run: (await import('./commands/inbox.ts')).show }),
  },
  {
    name: 'inbox replay',
    summary: 'Run messages that are done or dead once more, each in a new turn',
    usage: '[number...]',
    argsMax: NUMBERS_MAX,
    options: { ...selection('dead'), channel },
    load: async () => ({ run: (await import('./commands/inbox.ts')).replay }),
  },
  {
    name: 'inbox dead',
    summary: 'List messages that were given up',
    options: PAGE,
    load: async () => ({ run: (await import('./commands/inbox.ts')).dead }),
  },
  {
    name: 'outbox list',
    summary: 'List messages that go out over channels, newest first',
    options: { state: state('queued, sending, failed, sent, ambiguous, dead'), ...PAGE },
    load: async () => ({ run: (await import('./commands/outbox.ts')).list }),
  },
  {
    name: 'outbox show',
    summary: 'Show one message that goes out, and the turn it is of',
    usage: '<number>',
    argsMin: 1,
    argsMax: 1,
    load: async () => ({ run: (await import('./commands/outbox.ts')).show }),
  },
  {
    name: 'outbox replay',
    summary: 'Send messages that are dead or ambiguous once more; an ambiguous one may arrive twice',
    usage: '[number...]',
    argsMax: NUMBERS_MAX,
    options: { ...selection('dead, ambiguous or both as dead,ambiguous'), channel },
    load: async () => ({ run: (await import('./commands/outbox.ts')).replay }),
  },
  {
    name: 'outbox dead',
    summary: 'List what was given up, and what may have been sent and nobody knows',
    options: PAGE,
    load: async () => ({ run: (await import('./commands/outbox.ts')).dead }),
  },
]
