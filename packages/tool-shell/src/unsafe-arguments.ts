/** Arguments that let a listed program run another program, take code from the command line or change its own settings. */

interface Unsafe {
  readonly program: RegExp
  readonly argument: RegExp
  /** The rule applies only to the subcommand, the first word that is neither an option nor the value of one. */
  readonly leading?: true
  /** The rule applies only if another argument matches this pattern. */
  readonly onlyWith?: RegExp
}

const UNSAFE: readonly Unsafe[] = [
  { program: /^find$/, argument: /^-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)$/ },
  { program: /^git$/, argument: /^(?:config|alias|filter-branch|bisect|difftool|mergetool|hook|instaweb|send-email)$/, leading: true },
  { program: /^git$/, argument: /^foreach$/, onlyWith: /^submodule$/ },
  // Git accepts a shortened option as long as it is unique.
  { program: /^git$/, argument: /^(?:-c.*|-[xO].*|--(?:config-e|exe|extc|upl|receiv|open-).*|alias\..*|ext::.*)$/s },
  { program: /^git$/, argument: /^-u/, onlyWith: /^(?:clone|fetch|pull|ls-remote)$/ },
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

/** Programs that run another program, which the allowlist would not check. */
const LAUNCHERS: ReadonlySet<string> = new Set([
  ...['env', 'xargs', 'nice', 'ionice', 'nohup', 'timeout', 'time', 'watch', 'setsid', 'stdbuf', 'flock', 'script', 'parallel', 'entr'],
  ...['sudo', 'doas', 'su', 'chroot', 'unshare', 'nsenter', 'busybox', 'ssh'],
  ...['exec', 'command', 'builtin', 'eval', 'source', '.', 'trap'],
])

/** Returns the first unsafe argument of a program, or undefined without one. */
export function unsafeArgument(program: string, args: readonly string[]): string | undefined {
  if (LAUNCHERS.has(program)) return args[0]
  const rules = UNSAFE.filter((rule) => rule.program.test(program) && (!rule.onlyWith || args.some((arg) => rule.onlyWith?.test(arg))))
  return args.find((argument, at) => rules.some((rule) => rule.argument.test(argument) && (!rule.leading || isLeading(args, at))))
}

/** True if each earlier argument is an option or may be the value of one. */
const isLeading = (args: readonly string[], at: number): boolean =>
  args.slice(0, at).every((arg, before) => arg.startsWith('-') || args[before - 1]?.startsWith('-'))
