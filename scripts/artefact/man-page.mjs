// Writes the manual page sluice(1) of a build, from the descriptions of its commands.
import { COMMON_OPTIONS, REMOTE_OPTIONS } from '../../packages/cli/src/command.ts'
import { COMMANDS } from '../../packages/cli/src/command-descriptions.ts'
import { featureCommands } from '../../packages/cli/src/feature-commands.ts'
import { CATALOGUE } from '../../packages/sdk/src/feature/catalogue.ts'

/** Escapes text for troff: backslashes, hyphens, a control character at the start of a line, and characters outside ASCII. */
const troff = (text) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(/[^\0-\x7f]/gu, (character) => `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`)

const optionLines = (options) =>
  Object.entries(options).flatMap(([name, { short, value, help }]) => [
    '.TP',
    `${short ? `\\fB\\-${short}\\fR, ` : ''}\\fB\\-\\-${troff(name)}\\fR${value ? ` ${troff(value)}` : ''}`,
    troff(help),
  ])

function commandLines({ name, summary, more, usage, options, remote }) {
  return [
    '.SS',
    troff(['sluice', name, usage].filter(Boolean).join(' ')),
    `${troff(summary)}.`,
    ...(more ? ['.PP', troff(more)] : []),
    ...optionLines(options ?? {}),
    ...(remote ? ['.PP', 'Takes the options of a remote daemon.'] : []),
  ]
}

/** Returns the source of the page. `ids` are the features of the build; commands of other features are left out. */
export function manPage({ version, description, ids }) {
  const commands = featureCommands(ids.map((id) => ({ id }))).filter(({ name }) =>
    ids.some((id) => (CATALOGUE[id]?.commands ?? []).includes(name)),
  )
  return `${[
    `.TH SLUICE 1 "" "sluice ${version}" "User Commands"`,
    '.SH NAME',
    'sluice \\- an agent runtime: one daemon, many clients',
    '.SH SYNOPSIS',
    '.B sluice',
    '<command> [options]',
    '.SH DESCRIPTION',
    troff(description),
    '.SH OPTIONS OF EVERY COMMAND',
    ...optionLines(COMMON_OPTIONS),
    '.SH OPTIONS OF A REMOTE DAEMON',
    ...optionLines(REMOTE_OPTIONS),
    '.SH COMMANDS',
    ...[...COMMANDS, ...commands].flatMap(commandLines),
    '.SH EXIT STATUS',
    troff('0 success, 1 failure, 2 wrong usage, 78 wrong configuration.'),
    '.SH ENVIRONMENT',
    '.TP',
    '.B SVC_DATA_DIR',
    'The data directory, unless an option names one.',
    '.TP',
    '.B SVC_TOKEN',
    'The bearer token for a remote daemon.',
    '.SH FILES',
    '.TP',
    '.I ~/.sluice/config.toml',
    'The configuration.',
    '.TP',
    '.I ~/.sluice/sluice.db',
    'The database.',
  ].join('\n')}\n`
}
