/** The arguments a program is known to take without doing anything but its plain business. All others are unknown, not harmless. */

/** What the words of a program are that are neither options nor their values. */
type Operands = 'paths' | 'texts' | 'none'

export interface ArgumentRules {
  /** Letters of options without a value; several may share a word, as in `-la`. */
  readonly flags?: string
  /** Letters of options with a value, which stands in the same word or is the next one. */
  readonly valued?: string
  /** Long options in full, separated by blanks. `name=` has a value, `name[=]` may have one in the same word. */
  readonly long?: string
  /** A number stands for an option, as in `head -20`. */
  readonly numbers?: true
  readonly operands: Operands
  /** The first operand is a text, unless one of these options gave it. */
  readonly textFirst?: { readonly unless: readonly string[] }
}

/** The indices of the arguments that are paths; undefined if one of the arguments is unknown. */
export function pathArguments(args: readonly string[], rules: ArgumentRules): readonly number[] | undefined {
  const { flags = '', valued = '', numbers = false, textFirst, operands: kind } = rules
  const long = new Set(rules.long?.split(' '))
  const given = new Set<string>()
  const operands: number[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (arg === '--') {
      for (let rest = at + 1; rest < args.length; rest++) operands.push(rest)
      break
    }
    if (arg === '-' || !arg.startsWith('-')) operands.push(at)
    else if (arg.startsWith('--')) {
      const equals = arg.indexOf('=')
      const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals)
      given.add(`--${name}`)
      if (equals < 0 && long.has(`${name}=`)) at++
      else if (!long.has(`${name}[=]`) && !long.has(equals < 0 ? name : `${name}=`)) return undefined
    } else if (!(numbers && /^-\d+$/.test(arg))) {
      const letters = [...arg.slice(1)]
      const takesValue = letters.findIndex((letter) => !flags.includes(letter))
      const letter = letters[takesValue]
      if (letter !== undefined && !valued.includes(letter)) return undefined
      if (letter !== undefined) given.add(`-${letter}`)
      if (takesValue === letters.length - 1) at++
    }
  }
  if (kind === 'none') return operands.length > 0 ? undefined : []
  if (kind === 'texts') return []
  const isTextGiven = textFirst?.unless.some((option) => given.has(option)) ?? true
  return operands.slice(isTextGiven ? 0 : 1).filter((at) => args[at] !== '-')
}
