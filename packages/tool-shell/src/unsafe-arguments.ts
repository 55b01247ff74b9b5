/** Arguments by which a listed program runs another one, takes code from the command line or changes its own rules. */

interface Unsafe {
  readonly program: RegExp
  readonly argument: RegExp
  /** Only as the subcommand: before it stand options and their values. */
  readonly leading?: true
  /** Only next to an argument like this. */
  readonly beside?: RegExp
}

const UNSAFE: readonly Unsafe[] = [
  { program: /^find$/, argument: /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/ },
  { program: /^git$/, argument: /^(?:config|alias|filter-branch|bisect|difftool|mergetool|hook|instaweb|send-email)$/, leading: true },
  { program: /^git$/, argument: /^foreach$/, beside: /^submodule$/ },
  // options may be shortened as far as they stay unique
  { program: /^git$/, argument: /^(?:-c.*|-[xO].*|--(?:config-e|exe|extc|upl|receiv|open-).*|alias\..*|ext::.*)$/s },
  { program: /^git$/, argument: /^-u/, beside: /^(?:clone|fetch|pull|ls-remote)$/ },
  { program: /^(?:python|pypy)[\d.]*$/, argument: /^-[A-Za-z]*[cm]/ },
  {
    program: /^(?:node|nodejs|bun|deno)$/,
    argument: /^(?:-[a-z]?[epr](?:=.*)?|eval|--(?:eval|print|require|import|loader|experimental-loader)(?:=.*)?)$/s,
  },
  { program: /^pip[\d.]*$/, argument: /^(?:install|download)$/, leading: true },
  { program: /^(?:npm|pnpm|yarn)$/, argument: /^(?:exec|x|dlx|install|i|add|ci|init|create|config|set|link)$/, leading: true },
  { program: /^cargo$/, argument: /^install$/, leading: true },
  { program: /^cargo$/, argument: /^--config/ },
  { program: /^(?:perl|ruby|lua|php)[\d.]*$/, argument: /^-[A-Za-z]*[eEr]/ },
  { program: /^(?:sh|bash|dash|zsh|ksh|fish|ash)$/, argument: /^-[A-Za-z]*[cs]/ },
  { program: /^tar$/, argument: /^(?:-I.*|--(?:checkpoint-a|to-c|use-c|rsh|info-s|new-v).*)$/s },
  { program: /^sort$/, argument: /^--co/ },
  { program: /^[gmn]?awk$/, argument: /system|getline|\||>/ },
  { program: /^sed$/, argument: /(?<![A-Za-z])[eEwW](?:[\s;}]|$)|\/[gpiImM\d]*[ew](?:[\s;}]|$)/ },
]

/** Programs whose business is to run another one, which the allowlist would not see. */
const LAUNCHERS: ReadonlySet<string> = new Set([
  ...['env', 'xargs', 'nice', 'ionice', 'nohup', 'timeout', 'time', 'watch', 'setsid', 'stdbuf', 'flock', 'script', 'parallel', 'entr'],
  ...['sudo', 'doas', 'su', 'chroot', 'unshare', 'nsenter', 'busybox', 'ssh'],
  ...['exec', 'command', 'builtin', 'eval', 'source', '.', 'trap'],
])

/** The argument that makes the program more than its name says; `undefined` if there is none. */
export function unsafeArgument(program: string, args: readonly string[]): string | undefined {
  if (LAUNCHERS.has(program)) return args[0]
  const rules = UNSAFE.filter((rule) => rule.program.test(program) && (!rule.beside || args.some((arg) => rule.beside?.test(arg))))
  return args.find((argument, at) => rules.some((rule) => rule.argument.test(argument) && (!rule.leading || isLeading(args, at))))
}

/** True if every argument before is an option or may be the value of one. */
const isLeading = (args: readonly string[], at: number): boolean =>
  args.slice(0, at).every((arg, before) => arg.startsWith('-') || args[before - 1]?.startsWith('-'))
