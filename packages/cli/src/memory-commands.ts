/** The commands on the agent's memory, as data. */
import type { CliCommand, CliOption } from './command-table.ts'

const OWNER: CliOption = {
  type: 'string',
  value: '<owner>',
  help: 'device:<id>, channel:<channel>/<account>/<sender>, sop:<name>, cli, local, shared or unowned',
}

export const MEMORY_COMMANDS: readonly CliCommand[] = [
  {
    name: 'memory list',
    summary: 'List what the agent remembers, with whose memory each is',
    options: { owner: OWNER },
    load: async () => ({ run: (await import('./commands/memory.ts')).list }),
  },
  {
    name: 'memory show',
    summary: 'Show one memory',
    usage: '<key>',
    argsMin: 1,
    argsMax: 1,
    options: { owner: OWNER },
    load: async () => ({ run: (await import('./commands/memory.ts')).show }),
  },
  {
    name: 'memory forget',
    summary: 'Remove one memory, or all of one owner',
    usage: '[key]',
    argsMax: 1,
    options: { owner: OWNER, all: { type: 'boolean', help: 'with --owner: everything that is remembered for this owner' } },
    load: async () => ({ run: (await import('./commands/memory.ts')).forget }),
  },
  {
    name: 'memory assign',
    summary: 'Give memories to an owner, or to all clients',
    more: 'Without --from, the memories an earlier release wrote without an owner. A memory whose key the new owner uses already stays where it is.',
    usage: '[owner]',
    argsMax: 1,
    options: {
      shared: { type: 'boolean', help: 'to all clients: each may recall them, none may change them' },
      from: { ...OWNER, help: 'whose memories (default: unowned)' },
      key: { type: 'string', value: '<key>', help: 'only this one' },
    },
    load: async () => ({ run: (await import('./commands/memory.ts')).assign }),
  },
]
