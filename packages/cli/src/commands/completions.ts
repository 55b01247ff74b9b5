/** `sluice completions`: scripts made from the command table. */
import { AppError } from '@sluice/sdk'
import { COMMANDS, COMMON_OPTIONS } from '../command-table.ts'
import type { CliContext } from '../context.ts'
import { featureCommands } from '../feature-commands.ts'

interface Completion {
  /** The command's words. */
  readonly name: string
  readonly summary: string
  readonly options: readonly string[]
}

const SHELLS: Record<string, (commands: readonly Completion[]) => string> = { bash, zsh, fish }

export async function run({ args, out, features }: CliContext): Promise<number> {
  const [shell = ''] = args
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined
  if (!script) throw new AppError('invalid_request', `completions are made for bash, zsh and fish, not '${shell}'`)
  const commands = [...COMMANDS, ...featureCommands(features)].map(({ name, summary, options }) => ({
    name,
    summary,
    options: Object.keys({ ...options, ...COMMON_OPTIONS }).map((option) => `--${option}`),
  }))
  out.write(script(commands))
  return 0
}

/** What may follow each beginning of a command: the next words, and at its end the options. */
function continuations(commands: readonly Completion[]): Map<string, string[]> {
  const next = new Map<string, Set<string>>()
  const add = (begun: string, word: string) => next.set(begun, (next.get(begun) ?? new Set()).add(word))
  for (const { name, options } of commands) {
    const words = name.split(' ')
    for (const [index, word] of words.entries()) add(words.slice(0, index).join(' '), word)
    for (const option of options) add(name, option)
  }
  return new Map([...next].map(([begun, words]) => [begun, [...words]]))
}

function bash(commands: readonly Completion[]): string {
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
    `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    '}',
    'complete -o default -F _sluice sluice',
    '',
  ].join('\n')
}

function zsh(commands: readonly Completion[]): string {
  return ['#compdef sluice', 'autoload -U +X bashcompinit && bashcompinit', bash(commands)].join('\n')
}

function fish(commands: readonly Completion[]): string {
  const quote = (text: string) => `'${text.replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ name, summary, options }) => {
    const words = name.split(' ')
    const first = `complete -c sluice -n __fish_use_subcommand -f -a ${words[0]}`
    const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const second = words[1]
      ? [`complete -c sluice -n '__fish_seen_subcommand_from ${words[0]}' -f -a ${words[1]} -d ${quote(summary)}`]
      : []
    return [
      words[1] ? first : `${first} -d ${quote(summary)}`,
      ...second,
      ...options.map((option) => `complete -c sluice -n '${seen}' -l ${option.slice(2)}`),
    ]
  })
  return `${[...new Set(lines)].join('\n')}\n`
}
