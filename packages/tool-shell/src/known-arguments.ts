/**
 * Lists the arguments with which a program neither runs another program, nor takes code, nor writes to a file that the
 * command does not spell out. A command with any other argument needs an approval. A program without rules here accepts
 * all arguments.
 */
import { type ArgumentRules, pathArguments } from './argument-rules.ts'
import { AWK, CARGO, GIT, NPM, PIP, plain, SORT, SPLIT, TAR } from './argument-tables.ts'
import { isHarmlessSedScript } from './harmless-sed-script.ts'
import { hasReadOnlyForm, readOnlyPaths } from './read-only-commands.ts'

type IsKnown = (args: readonly string[]) => boolean

const fits =
  (rules: ArgumentRules): IsKnown =>
  (args) =>
    pathArguments(args, rules) !== undefined

/** Only the options in `before` may precede the subcommand. */
const withSubcommands =
  (subcommands: Readonly<Record<string, ArgumentRules>>, before: readonly string[] = []): IsKnown =>
  (args) => {
    const at = args.findIndex((arg) => !before.includes(arg))
    if (at < 0) return true
    const name = args[at] ?? ''
    const rules = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined
    return rules !== undefined && fits(rules)(args.slice(at + 1))
  }

/** File names that make a program read its code from a pipe. */
const STANDARD_INPUT = /(?:^|\/)(?:stdin|\d+)$/

/** For a program that runs code: accepts a file with any arguments, or a request for the version. */
const runsFile: IsKnown = ([first = '', ...rest]) =>
  first === '' || first === 'inspect'
    ? false
    : /^[-+]/.test(first)
      ? ['--version', '-V', '-v', '--test'].includes(first) && rest.length === 0
      : !STANDARD_INPUT.test(first)

/** The subcommands of `bun` and `deno` that run files of the workspace. Their other ones take, fetch or install code. */
const RUNTIME_RUN = plain('', '')
const isKnownRuntime: IsKnown = (args) =>
  !args.some((arg) => arg.includes(':')) &&
  withSubcommands({ run: RUNTIME_RUN, test: RUNTIME_RUN, task: RUNTIME_RUN }, ['--version', '-V', '-v'])(args)

/** After an `@`, `gawk` loads a library or calls a function by a computed name. */
const isKnownAwk: IsKnown = (args) => fits(AWK)(args) && !args.some((arg) => arg.includes('@'))

/** For a program that can run another one: refuses the arguments that match the pattern. */
const without =
  (pattern: RegExp): IsKnown =>
  (args) =>
    !args.some((arg) => pattern.test(arg))
const withoutOptions = without(/^[-+]./)

/** The first word may be option letters without a dash, which take their values from the next words. */
const isKnownTar: IsKnown = (args) => {
  if (args.some((arg) => arg.includes(':'))) return false // `host:file` makes tar connect to a host.
  const [first = '', ...rest] = args
  if (first.startsWith('-')) return fits(TAR)(args)
  const letters = [...first]
  if (!letters.every((letter) => `${TAR.flags}${TAR.valued}`.includes(letter))) return false
  return fits(TAR)(rest.slice(letters.filter((letter) => TAR.valued?.includes(letter)).length))
}

const isKnownSed: IsKnown = (args) => {
  const scripts: string[] = []
  const files: string[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (/^-[nErsuz]+$/.test(arg) || /^-[nErsuz]*i(?:\.\w+)?$/.test(arg) || arg === '--quiet' || arg === '--regexp-extended') continue
    if (arg === '-e') scripts.push(args[++at] ?? '')
    else if (arg.startsWith('-') && arg !== '-') return false
    else files.push(arg)
  }
  if (scripts.length === 0) scripts.push(files.shift() ?? '')
  return scripts.every(isHarmlessSedScript)
}

const KNOWN: readonly (readonly [program: RegExp, isKnown: IsKnown])[] = [
  [/^git$/, withSubcommands(GIT, ['--no-pager', '-P', '--no-optional-locks', '--version'])],
  [/^(?:npm|pnpm|yarn)$/, withSubcommands(NPM, ['--version', '-v'])],
  [/^cargo$/, withSubcommands(CARGO, ['--version', '-V'])],
  [/^pip[\d.]*$/, withSubcommands(PIP, ['--version', '-V'])],
  [/^(?:(?:python|pypy|perl|ruby|lua|php)[\d.]*|node|nodejs|sh|bash|dash|zsh|ksh|fish|ash)$/, runsFile],
  [/^tar$/, isKnownTar],
  [/^sort$/, fits(SORT)],
  [/^split$/, fits(SPLIT)],
  [/^[gmn]?awk$/, isKnownAwk],
  [/^(?:bun|deno)$/, isKnownRuntime],
  [/^(?:vim?|nvim|view|ex|ed|emacs|less|more|man|gdb|lldb|zip|rsync|scp|sftp)$/, withoutOptions],
  [/^rg$/, without(/^--(?:pre|hostname-bin)(?:=|$)/)],
  [/^(?:fd|fdfind)$/, without(/^(?:-[A-Za-z0-9]*[xX]|--exec)/)],
  [/^sed$/, isKnownSed],
]

/** Returns false if the program has rules and one of the arguments does not match them. */
export function areKnownArguments(program: string, args: readonly string[]): boolean {
  if (hasReadOnlyForm(program)) return readOnlyPaths(program, args) !== undefined
  return KNOWN.find(([name]) => name.test(program))?.[1](args) ?? true
}
