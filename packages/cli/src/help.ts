/** The texts of `--help`, made from the descriptions of the commands. */
import { allOptions, COMMON_OPTIONS, type CommandDescription, type CommandOption } from './command.ts'

/** Returns the help of `sluice --help`: every command with its summary, the common options and the exit codes. */
export function overview(commands: readonly CommandDescription[], version: string): string {
  return [
    `Sluice ${version}: an agent runtime. One daemon, many clients, nothing lost and nothing run twice.`,
    '',
    'usage: sluice <command> [options]',
    '',
    'commands',
    ...summaryLines(commands),
    '',
    'options every command takes',
    ...optionLines(COMMON_OPTIONS),
    '',
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 78 wrong configuration. 'sluice <command> --help' describes a command.",
  ].join('\n')
}

/** Returns the help of a first word that several commands share, such as `hardware`. */
export function familyHelp(word: string, family: readonly CommandDescription[]): string {
  return [
    `usage: sluice ${word} <command> [options]`,
    '',
    ...summaryLines(family),
    '',
    `'sluice ${word} <command> --help' describes a command.`,
  ].join('\n')
}

/** Returns the help of one command. */
export function commandHelp(command: CommandDescription): string {
  const { name, summary, more, usage } = command
  return [
    summary,
    '',
    ...(more ? [more, ''] : []),
    `usage: sluice ${[name, usage, '[options]'].filter(Boolean).join(' ')}`,
    '',
    'options',
    ...optionLines(allOptions(command)),
  ].join('\n')
}

function summaryLines(commands: readonly CommandDescription[]): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
}

function optionLines(options: Readonly<Record<string, CommandOption>>): string[] {
  const lines = Object.entries(options).map(([name, { short, value, help }]) => ({
    syntax: `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`,
    help,
  }))
  const width = Math.max(...lines.map(({ syntax }) => syntax.length))
  return lines.map(({ syntax, help }) => `  ${syntax.padEnd(width)}  ${help}`)
}
