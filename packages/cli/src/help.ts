/** The texts of `--help`, from the command table. */
import { type CliCommand, type CliOption, COMMON_OPTIONS } from './command-table.ts'

const indent = (name: string, text: string, width: number): string => `  ${name.padEnd(width)}  ${text}`

const optionName = (name: string, { short, value }: CliOption): string =>
  `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`

function optionLines(options: Readonly<Record<string, CliOption>>): string[] {
  const names = Object.entries(options).map(([name, option]) => optionName(name, option))
  const width = Math.max(...names.map((name) => name.length))
  return Object.values(options).map((option, index) => indent(names[index] ?? '', option.help, width))
}

export function overview(commands: readonly Pick<CliCommand, 'name' | 'summary'>[], version: string): string {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return [
    `Sluice ${version}: an agent runtime. One daemon, many clients, nothing lost and nothing run twice.`,
    '',
    'usage: sluice <command> [options]',
    '',
    'commands',
    ...commands.map(({ name, summary }) => indent(name, summary, width)),
    '',
    'options every command takes',
    ...optionLines(COMMON_OPTIONS),
    '',
    "Exit codes: 0 fine, 1 failed, 2 wrong usage, 78 wrong configuration. 'sluice <command> --help' says more.",
  ].join('\n')
}

/** Of the first word that several commands share, such as `hardware`. */
export function familyHelp(word: string, family: readonly Pick<CliCommand, 'name' | 'summary'>[]): string {
  const width = Math.max(...family.map(({ name }) => name.length))
  return [
    `usage: sluice ${word} <command> [options]`,
    '',
    ...family.map(({ name, summary }) => indent(name, summary, width)),
    '',
    `'sluice ${word} <command> --help' says more.`,
  ].join('\n')
}

export function commandHelp(command: CliCommand): string {
  const options: Readonly<Record<string, CliOption>> = { ...command.options, ...COMMON_OPTIONS }
  return [
    command.summary,
    '',
    ...(command.more ? [command.more, ''] : []),
    `usage: sluice ${[command.name, command.usage, '[options]'].filter(Boolean).join(' ')}`,
    '',
    'options',
    ...optionLines(options),
  ].join('\n')
}
