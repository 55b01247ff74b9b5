/** The commands on approvals, as data. */
import type { CliCommand } from './command-table.ts'

const KEY = { usage: '<run> <step>', argsMin: 2, argsMax: 2 } as const

export const APPROVAL_COMMANDS: readonly CliCommand[] = [
  {
    name: 'approvals list',
    summary: 'List what people are asked and what they answered, newest first',
    options: {
      state: { type: 'string', value: '<state>', help: 'only in this state: pending, approved, rejected, expired, cancelled' },
      limit: { type: 'string', value: '<number>', help: 'how many at most, 1 to 500 (default: 50)' },
    },
    load: async () => ({ run: (await import('./commands/approvals.ts')).list }),
  },
  {
    name: 'approvals show',
    summary: 'Show one approval: what is asked, where, and how it stands',
    ...KEY,
    load: async () => ({ run: (await import('./commands/approvals.ts')).show }),
  },
  {
    name: 'approvals approve',
    summary: 'Approve; the first answer, wherever it is given, counts',
    ...KEY,
    load: async () => ({ run: (await import('./commands/approvals.ts')).approve }),
  },
  {
    name: 'approvals reject',
    summary: 'Reject, with feedback for whoever waits',
    usage: '<run> <step> [feedback]',
    argsMin: 2,
    argsMax: 3,
    load: async () => ({ run: (await import('./commands/approvals.ts')).reject }),
  },
]
