/** The command `sluice daemon`. The start of a daemon finds it here, without loading the other commands. */
import type { CliCommand, CommandDescription } from './command.ts'

export const DAEMON = {
  name: 'daemon',
  summary: 'Run the daemon in the foreground',
  loadsNamedFeatures: true,
  options: {
    host: { type: 'string', value: '<address>', help: 'address to bind, instead of [gateway] host' },
    port: { type: 'string', value: '<number>', help: 'port to bind, instead of [gateway] port; 0 takes any free one' },
    'new-database': { type: 'boolean', help: 'start with an empty database if the database of this data directory is missing' },
  },
} as const satisfies CommandDescription

export const DAEMON_COMMAND: CliCommand = { ...DAEMON, load: async () => (await import('./commands/daemon.ts')).run }
