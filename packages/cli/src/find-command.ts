/** Finds the command that a command line names, and explains a name that no command has. */
import { AppError } from '@sluice/sdk'
import type { CliCommand, CommandDescription } from './command.ts'

/** Returns the command whose words the arguments begin with. */
export const findCommand = (argv: readonly string[], commands: readonly CliCommand[]): CliCommand | undefined =>
  commands.find(({ name }) => name.split(' ').every((word, index) => argv[index] === word))

/** Returns the commands of two words that begin with this one, such as every `config …`. */
export const commandFamily = <Command extends CommandDescription>(firstWord: string, commands: readonly Command[]): readonly Command[] =>
  commands.filter(({ name }) => name.startsWith(`${firstWord} `))

/** The verbs of commands that remove or replace something beyond recovery. A typing error must never run one of them. */
const DESTRUCTIVE = /\b(?:assign|discard|erase|flash|forget|migrate|recovered|remove|reset|restore|revoke|uninstall|unlink)\b/

/** Words of other programs, and the words of the commands that do the same here. */
const MEANT: Readonly<Record<string, readonly string[]>> = {
  start: ['daemon'],
  run: ['daemon'],
  serve: ['daemon'],
  kill: ['stop'],
  ps: ['status'],
  tail: ['logs'],
  get: ['show', 'list'],
  show: ['get', 'list'],
  view: ['show', 'get', 'list'],
  ls: ['list'],
  create: ['add'],
  new: ['add', 'create'],
}

/** Throws `invalid_request`. The message names the most similar command, or the commands that begin with the same word. */
export async function unknownCommand(argv: readonly string[], commands: readonly CliCommand[]): Promise<never> {
  const [first = ''] = argv
  // The word after an option may be the value of that option, so the words of the command cannot be recognized.
  if (first.startsWith('-')) throw new AppError('invalid_request', `options come after the command: sluice <command> ${first} …`)
  const end = argv.findIndex((word) => word.startsWith('-'))
  const words = end < 0 ? argv : argv.slice(0, end)
  const family = commandFamily(first, commands)
  if (family.length > 0 && words.length === 1)
    throw new AppError('invalid_request', `'sluice ${first}' needs one of its commands: ${family.map(({ name }) => name).join(', ')}`)
  const names = commands.map(({ name }) => name).filter((name) => !DESTRUCTIVE.test(name))
  const suggestion =
    meant(words, names) ||
    (await didYouMean(words.slice(0, 2).join(' '), names)) ||
    (family.length === 0 ? await didYouMean(first, names) : '')
  const others = family.length > 0 ? `; there are: ${family.map(({ name }) => name).join(', ')}` : "; 'sluice --help' lists the commands"
  throw new AppError('invalid_request', `unknown command '${words.join(' ')}'${suggestion || others}`)
}

/** Returns the suggestion for a word that another program has in place of the last one. */
function meant(words: readonly string[], names: readonly string[]): string {
  const [first = '', second] = words
  const [last, prefix] = second === undefined ? [first, ''] : [second, `${first} `]
  const found = Object.hasOwn(MEANT, last) ? MEANT[last]?.find((word) => names.includes(prefix + word)) : undefined
  return found === undefined ? '' : suggested(prefix + found)
}

const suggested = (name: string): string => `; did you mean '${name}'?`

/** Returns `; did you mean 'status'?`, or an empty text when no name is similar. */
export async function didYouMean(unknown: string, names: readonly string[], prefix = ''): Promise<string> {
  const { nearestName } = await import('@sluice/kit')
  const nearest = nearestName(unknown, names)
  return nearest === undefined ? '' : suggested(prefix + nearest)
}
