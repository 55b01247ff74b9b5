/** The commands on procedures, as data. */
import type { CliCommand } from './command-table.ts'

export const SOP_COMMANDS: readonly CliCommand[] = [
  {
    name: 'sop list',
    summary: 'List the procedures, with what triggers each',
    load: () => import('./commands/sop-list.ts'),
  },
  {
    name: 'sop validate',
    summary: 'Check every procedure, and say where what is wrong stands',
    load: () => import('./commands/sop-validate.ts'),
  },
  {
    name: 'sop waiting',
    summary: 'List procedures in the workspace that wait for an operator, or show the files of one',
    more: 'The agent can write in the workspace: what is new or changed there is not loaded before an operator agrees to it.',
    usage: '[folder]',
    argsMax: 1,
    load: async () => ({ run: (await import('./commands/sop-agree.ts')).waiting }),
  },
  {
    name: 'sop accept',
    summary: 'Agree to a procedure in the workspace as it is; the hash says what was looked at',
    usage: '<folder> <hash>',
    argsMin: 2,
    argsMax: 2,
    load: async () => ({ run: (await import('./commands/sop-agree.ts')).accept }),
  },
  {
    name: 'sop adopt',
    summary: 'Move procedures that were agreed to out of the workspace, to where the agent cannot write',
    usage: '[folder]',
    argsMax: 1,
    load: async () => ({ run: (await import('./commands/sop-agree.ts')).adopt }),
  },
  {
    name: 'sop show',
    summary: 'Show one procedure: its triggers, its steps, and which of them wait for a person',
    usage: '<name>',
    argsMin: 1,
    argsMax: 1,
    load: () => import('./commands/sop-show.ts'),
  },
  {
    name: 'sop simulate',
    summary: 'Walk an event through triggers, conditions, steps, approvals and costs; nothing is run and nothing is kept',
    usage: '[name]',
    argsMax: 1,
    options: { event: { type: 'string', value: '<file>', help: 'the event: {"source", "topic", "payload"} as JSON; - is standard input' } },
    load: () => import('./commands/sop-simulate.ts'),
  },
  {
    name: 'sop run',
    summary: 'Start a procedure by hand; the daemon works on it',
    usage: '<name>',
    argsMin: 1,
    argsMax: 1,
    options: {
      payload: { type: 'string', value: '<json>', help: 'what its first step is given; - is standard input' },
      wait: { type: 'string', value: '<seconds>', help: 'follow it for so long (default: 0)' },
    },
    load: () => import('./commands/sop-run.ts'),
  },
  {
    name: 'sop runs',
    summary: 'List runs, newest first',
    options: {
      sop: { type: 'string', value: '<name>', help: 'only of this procedure' },
      active: { type: 'boolean', help: 'only those that have not ended' },
      limit: { type: 'string', value: '<number>', help: 'how many at most, 1 to 500 (default: 50)' },
      before: { type: 'string', value: '<run>', help: 'only older ones: the next page' },
    },
    load: async () => ({ run: (await import('./commands/sop-runs.ts')).list }),
  },
  {
    name: 'sop status',
    summary: 'Show one run: what set it off, and how each step went',
    usage: '<run>',
    argsMin: 1,
    argsMax: 1,
    load: async () => ({ run: (await import('./commands/sop-runs.ts')).show }),
  },
  {
    name: 'sop cancel',
    summary: 'End a run before its end',
    usage: '<run> [reason]',
    argsMin: 1,
    argsMax: 2,
    load: async () => ({ run: (await import('./commands/sop-runs.ts')).cancel }),
  },
  {
    name: 'sop audit',
    summary: 'Show the audit log, and check that nothing in it was changed',
    options: {
      run: { type: 'string', value: '<run>', help: 'only of this run' },
      sop: { type: 'string', value: '<name>', help: 'only of this procedure' },
      limit: { type: 'string', value: '<number>', help: 'how many records to show, 0 to 100000 (default: 50)' },
    },
    load: () => import('./commands/sop-audit.ts'),
  },
]
