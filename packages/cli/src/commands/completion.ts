/** `sluice completion`: prints a completion script with the commands, options and configuration keys of this build. */
import { sectionKeys, sectionsOf } from '@sluice/config'
import { AppError, type Feature, ROLES, ROWS } from '@sluice/sdk'
import { allOptions } from '../command.ts'
import { COMMANDS } from '../command-descriptions.ts'
import type { CliContext } from '../context.ts'
import { featureCommands } from '../feature-commands.ts'

interface CompletedCommand {
  readonly name: string
  readonly summary: string
  /** With their dashes. */
  readonly options: readonly string[]
  /** The possible values of the first argument. */
  readonly values: readonly string[]
}

/** The possible values of options, by the option with its dashes. */
type OptionValues = Readonly<Record<string, readonly string[]>>

const SCRIPTS: Record<string, (commands: readonly CompletedCommand[], values: OptionValues) => string> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

export async function run({ args, out, features }: CliContext): Promise<number> {
  const [shell = ''] = args
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (!script) throw new AppError('invalid_request', `completions are made for bash, zsh and fish, not '${shell}'`)
  const keys = configKeys(features)
  const firstArguments: Readonly<Record<string, readonly string[]>> = {
    'config get': keys,
    'config set': keys,
    completion: Object.keys(SCRIPTS),
  }
  const commands = [...COMMANDS, ...featureCommands(features)].map((command) => ({
    name: command.name,
    summary: command.summary,
    options: Object.keys(allOptions(command)).map((option) => `--${option}`),
    values: firstArguments[command.name] ?? [],
  }))
  out.write(script(commands, { '--channel': channelNames(features), '--role': ROLES }))
  return 0
}

/** Returns every configuration key of this build, such as `gateway.port`. */
const configKeys = (features: readonly Feature[]): string[] => [
  ...new Set(sectionsOf(features).flatMap(({ section }) => [...sectionKeys(section.schema).keys()].map((key) => `${section.path}.${key}`))),
]

/** Returns the channels of this build, by the names of their sections. */
function channelNames(features: readonly Feature[]): string[] {
  const compiled = new Set<string>(features.map(({ id }) => id))
  const sections = ROWS.flatMap(([id, { kind, section, moreSections = [] }]) =>
    kind === 'channel' && section && compiled.has(id) ? [section, ...moreSections] : [],
  )
  return [...new Set(sections.map((section) => section.slice(section.lastIndexOf('.') + 1)))]
}

/** Maps the words typed so far to the words that may follow: further words of a command, and after its last word its values and options. */
function continuations(commands: readonly CompletedCommand[]): Map<string, string[]> {
  const next = new Map<string, Set<string>>()
  const add = (typed: string, word: string) => next.set(typed, (next.get(typed) ?? new Set()).add(word))
  for (const { name, options, values } of commands) {
    const words = name.split(' ')
    for (const [index, word] of words.entries()) add(words.slice(0, index).join(' '), word)
    for (const word of [...values, ...options]) add(name, word)
  }
  return new Map([...next].map(([typed, words]) => [typed, [...words]]))
}

function bashScript(commands: readonly CompletedCommand[], values: OptionValues): string {
  const cases = [...continuations(commands)].map(([typed, words]) => `    '${typed}') words='${words.join(' ')}' ;;`)
  return [
    '_sluice() {',
    '  local typed words index',
    '  typed=""',
    '  for ((index = 1; index < COMP_CWORD; index++)); do',
    `    case "\${COMP_WORDS[index]}" in -*) ;; *) typed="\${typed:+$typed }\${COMP_WORDS[index]}" ;; esac`,
    '  done',
    '  case "$typed" in',
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

function zshScript(commands: readonly CompletedCommand[], values: OptionValues): string {
  return ['#compdef sluice', 'autoload -U +X bashcompinit && bashcompinit', bashScript(commands, values)].join('\n')
}

function fishScript(commands: readonly CompletedCommand[], optionValues: OptionValues): string {
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
        const possible = optionValues[option]
        return `complete -c sluice -n '${seen}' -l ${option.slice(2)}${possible ? ` -x -a ${quote(possible.join(' '))}` : ''}`
      }),
    ]
  })
  return `${[...new Set(lines)].join('\n')}\n`
}
