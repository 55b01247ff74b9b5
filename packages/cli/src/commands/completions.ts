/** `sluice completions`: scripts made from the command table, with the values that are known when the script is made. */
import { sectionKeys, sectionsOf } from '@sluice/config'
import { AppError, type Feature, ROWS } from '@sluice/sdk'
import { COMMANDS, COMMON_OPTIONS } from '../command-table.ts'
import type { CliContext } from '../context.ts'
import { featureCommands } from '../feature-commands.ts'

interface Completion {
  /** The command's words. */
  readonly name: string
  readonly summary: string
  readonly options: readonly string[]
  /** What its first argument may be. */
  readonly values: readonly string[]
}

/** The values of options that take one of a known list, by the option's name with its dashes. */
type OptionValues = Readonly<Record<string, readonly string[]>>

const SHELLS: Record<string, (commands: readonly Completion[], values: OptionValues) => string> = { bash, zsh, fish }

export async function run({ args, out, features }: CliContext): Promise<number> {
  const [shell = ''] = args
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (!script) throw new AppError('invalid_request', `completions are made for bash, zsh and fish, not '${shell}'`)
  const keys = configKeys(features)
  const firstArguments: Readonly<Record<string, readonly string[]>> = {
    'config get': keys,
    'config set': keys,
    completions: Object.keys(SHELLS),
  }
  const commands = [...COMMANDS, ...featureCommands(features)].map(({ name, summary, options }) => ({
    name,
    summary,
    options: Object.keys({ ...options, ...COMMON_OPTIONS }).map((option) => `--${option}`),
    values: firstArguments[name] ?? [],
  }))
  out.write(script(commands, { '--channel': channelNames(features), '--role': ['operator', 'client'] }))
  return 0
}

/** Every key of the configuration that this build knows, such as `gateway.port`. */
const configKeys = (features: readonly Feature[]): string[] => [
  ...new Set(sectionsOf(features).flatMap(({ section }) => [...sectionKeys(section.schema).keys()].map((key) => `${section.path}.${key}`))),
]

/** The channels of this build, as their sections are called. */
const channelNames = (features: readonly Feature[]): string[] =>
  ROWS.flatMap(([id, { kind, section }]) => (kind === 'channel' && section && features.some((feature) => feature.id === id) ? section : []))
    .map((section) => section.slice(section.lastIndexOf('.') + 1))
    .filter((name, index, names) => names.indexOf(name) === index)

/** What may follow each beginning of a command: the next words, and at its end the options. */
function continuations(commands: readonly Completion[]): Map<string, string[]> {
  const next = new Map<string, Set<string>>()
  const add = (begun: string, word: string) => next.set(begun, (next.get(begun) ?? new Set()).add(word))
  for (const { name, options, values } of commands) {
    const words = name.split(' ')
    for (const [index, word] of words.entries()) add(words.slice(0, index).join(' '), word)
    for (const word of [...values, ...options]) add(name, word)
  }
  return new Map([...next].map(([begun, words]) => [begun, [...words]]))
}

function bash(commands: readonly Completion[], values: OptionValues): string {
  const cases = [...continuations(commands)].map(([begun, words]) => `    '${begun}') words='${words.join(' ')}' ;;`)
  return [
    '_sluice() {',
    '  local begun words index',
    '  begun=""',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    `    case "\${COMP_WORDS[index]}" in -*) ;; *) begun="\${begun:+$begun }\${COMP_WORDS[index]}" ;; esac`,
    '  done',
    '  case "$begun" in',
    ...cases,
    "    *) words='' ;;",
    '  esac',
    `  case "\${COMP_WORDS[COMP_CWORD-1]}" in`,
    ...Object.entries(values).map(([option, words]) => `    ${option}) words='${words.join(' ')}' ;;`),
    '  esac',
    `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    'complete -o default -F _sluice sluice',
    '',
  ].join('\n')
}

function zsh(commands: readonly Completion[], values: OptionValues): string {
  return ['#compdef sluice', 'autoload -U +X bashcompinit && bashcompinit', bash(commands, values)].join('\n')
}

function fish(commands: readonly Completion[], optionValues: OptionValues): string {
  const quote = (text: string) => `'${text.replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ name, summary, options, values }) => {
    const words = name.split(' ')
    const first = `complete -c sluice -n __fish_use_subcommand -f -a ${words[0]}`
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const second = words[1]
      ? [`complete -c sluice -n '__fish_seen_subcommand_from ${words[0]}' -f -a ${words[1]} -d ${quote(summary)}`]
      : []
    return [
      words[1] ? first : `${first} -d ${quote(summary)}`,
      ...second,
      ...(values.length > 0 ? [`complete -c sluice -n '${seen}' -f -a ${quote(values.join(' '))}`] : []),
      ...options.map((option) => {
        const words = optionValues[option]
        return `complete -c sluice -n '${seen}' -l ${option.slice(2)}${words ? ` -x -a ${quote(words.join(' '))}` : ''}`
      }),
    ]
  })
  return `${[...new Set(lines)].join('\n')}\n`
}
