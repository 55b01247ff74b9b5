/** The texts of `--help`, made from the descriptions of the commands. No line is longer than 80 columns. */
import { allOptions, COMMON_OPTIONS, type CommandDescription, type CommandOption } from './command.ts'
import { commandFamily } from './find-command.ts'
import { besideNames, wrapText } from './wrap-text.ts'

const WIDTH = 80
/** The widest column of names. A longer name has a line of its own. */
const NAME_MAX = 22
const LEFT_OUT = ' (not in this build)'

/** The groups of the help, with the first words of their commands. Every first word of the core is in one. */
export const GROUPS: readonly { readonly title: string; readonly words: readonly string[] }[] = [
  { title: 'Begin', words: ['setup', 'daemon', 'agent', 'chat', 'dashboard', 'doctor', 'pair', 'passkeys'] },
  { title: 'The daemon', words: ['status', 'stop', 'restart', 'reload', 'logs', 'service', 'cluster'] },
  { title: 'Messages and people', words: ['channels', 'inbox', 'outbox', 'sessions', 'turns', 'limits', 'webhook', 'fedchat'] },
  { title: 'Work and decisions', words: ['sop', 'approvals', 'memory', 'schedule', 'skills'] },
  { title: 'Models and tools', words: ['models', 'mcp', 'plugin'] },
  { title: 'Configuration and data', words: ['config', 'secrets', 'backup', 'restore', 'store'] },
  { title: 'Hardware', words: ['hardware', 'peripheral'] },
  { title: 'This program', words: ['features', 'upgrade', 'native', 'completion'] },
]

/** The commands that a newcomer needs first. */
const FIRST = ['setup', 'daemon', 'chat', 'agent', 'dashboard', 'status', 'doctor', 'logs', 'stop']

const HEAD = (version: string): string[] => [
  `Sluice ${version}: an agent runtime. One daemon, many clients, nothing lost and`,
  'nothing run twice.',
  '',
  'usage: sluice <command> [options]',
  '',
]

/** Returns the help of `sluice` without a command. */
export function shortHelp(commands: readonly CommandDescription[], version: string): string {
  const rows = FIRST.flatMap((name) => commands.filter((command) => command.name === name)).map(summaryRow)
  return [...HEAD(version), ...besideNames(rows, WIDTH, NAME_MAX), '', "'sluice --help' lists all commands."].join('\n')
}

/** Returns the help of `sluice --help`: all commands in groups, the common options and the exit codes. */
export function overview(commands: readonly CommandDescription[], version: string): string {
  const words = [...new Set(commands.map(({ name }) => firstWord(name)))]
  const grouped = new Set(GROUPS.flatMap((group) => group.words))
  const groups = [...GROUPS, { title: 'Others', words: words.filter((word) => !grouped.has(word)) }]
  const sections = groups.flatMap((group) => {
    const rows = group.words.filter((word) => words.includes(word)).map((word) => overviewRow(word, commands))
    return rows.length === 0 ? [] : [group.title, ...besideNames(rows, WIDTH, NAME_MAX), '']
  })
  return [
    ...HEAD(version),
    ...sections,
    'Options of every command',
    ...optionLines(COMMON_OPTIONS),
    '',
    "'sluice <command> --help' describes a command, or lists those that begin so.",
    'Exit codes: 0 success, 1 failure, 2 wrong usage, 78 wrong configuration.',
  ].join('\n')
}

const firstWord = (name: string): string => name.split(' ')[0] ?? ''

const summaryRow = ({ name, summary }: CommandDescription): [string, string] => [name, summary]

/** Returns the summary of a command of one word, and the second words of the commands that begin with it. */
function overviewRow(word: string, commands: readonly CommandDescription[]): [string, string] {
  const alone = commands.find(({ name }) => name === word)
  const family = commandFamily(word, commands)
  const isLeftOut = family.length > 0 && family.every(({ summary }) => summary.endsWith(LEFT_OUT))
  const others = family.map(({ name }) => name.slice(word.length + 1)).join(', ')
  if (!alone) return [word, others + (isLeftOut ? LEFT_OUT : '')]
  return [word, family.length === 0 ? alone.summary : `${alone.summary}; also: ${others}`]
}

/** Returns the help of a first word that several commands share, such as `hardware`. */
export function familyHelp(word: string, family: readonly CommandDescription[]): string {
  return [
    `usage: sluice ${word} <command> [options]`,
    '',
    ...besideNames(family.map(summaryRow), WIDTH, NAME_MAX),
    '',
    `'sluice ${word} <command> --help' describes a command.`,
  ].join('\n')
}

/** Returns the help of one command. */
export function commandHelp(command: CommandDescription): string {
  const { name, summary, more, usage } = command
  return [
    ...wrapText(summary, WIDTH),
    '',
    ...(more ? [...wrapText(more, WIDTH), ''] : []),
    ...wrapText(`usage: sluice ${[name, usage, '[options]'].filter(Boolean).join(' ')}`, WIDTH),
    '',
    'options',
    ...optionLines(allOptions(command)),
  ].join('\n')
}

const optionLines = (options: Readonly<Record<string, CommandOption>>): string[] =>
  besideNames(
    Object.entries(options).map(([name, { short, value, help }]) => [
      `${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`,
      help,
    ]),
    WIDTH,
    NAME_MAX,
  )
