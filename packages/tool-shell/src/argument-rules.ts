/** Rules for the arguments that leave a program harmless. An argument without a rule counts as unknown, never as harmless. */

/** How the words that are neither options nor values of options are used. */
type Operands = 'paths' | 'texts' | 'none'

export interface ArgumentRules {
  /** Letters of options without a value; several may share a word, as in `-la`. */
  readonly flags?: string
  /** Letters of options with a value, which follows in the same word or is the next word. */
  readonly valued?: string
  /** Full names of long options, separated by blanks. `name=` has a value, `name[=]` may have one in the same word. */
  readonly long?: string
  /** Allows a number as an option, as in `head -20`. */
  readonly numbers?: true
  readonly operands: Operands
  /** The first operand is a text, unless one of these options supplies that text. */
  readonly textFirst?: { readonly unless: readonly string[] }
}

/** A known option. */
interface ReadOption {
  readonly name: string
  readonly takesNextWord: boolean
}

/** Returns the indices of the arguments that are paths, or undefined if one of the arguments is unknown. */
export function pathArguments(args: readonly string[], rules: ArgumentRules): readonly number[] | undefined {
  const given = new Set<string>()
  const operands: number[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (arg === '--') {
      for (let rest = at + 1; rest < args.length; rest++) operands.push(rest)
      break
    }
    if (arg === '-' || !arg.startsWith('-')) {
      operands.push(at)
      continue
    }
    const option = readOption(arg, rules)
    if (!option) return undefined
    given.add(option.name)
    if (option.takesNextWord) at++
  }
  return pathsAmong(operands, args, { rules, given })
}

function readOption(arg: string, rules: ArgumentRules): ReadOption | undefined {
  if (arg.startsWith('--')) return readLongOption(arg, rules)
  if (rules.numbers && /^-\d+$/.test(arg)) return { name: arg, takesNextWord: false }
  return readLetters(arg, rules)
}

function readLongOption(arg: string, { long }: ArgumentRules): ReadOption | undefined {
  const known = new Set(long?.split(' '))
  const equals = arg.indexOf('=')
  const hasValue = equals >= 0
  const name = hasValue ? arg.slice(2, equals) : arg.slice(2)
  if (!hasValue && known.has(`${name}=`)) return { name: `--${name}`, takesNextWord: true }
  const isKnown = known.has(`${name}[=]`) || known.has(hasValue ? `${name}=` : name)
  return isKnown ? { name: `--${name}`, takesNextWord: false } : undefined
}

/** Reads a word such as `-la` or `-n3`: flags, then at most one letter whose value is the rest of the word or the next word. */
function readLetters(arg: string, { flags = '', valued = '' }: ArgumentRules): ReadOption | undefined {
  const letters = [...arg.slice(1)]
  const valuedAt = letters.findIndex((letter) => !flags.includes(letter))
  const letter = letters[valuedAt]
  if (letter === undefined) return { name: arg, takesNextWord: false }
  if (!valued.includes(letter)) return undefined
  return { name: `-${letter}`, takesNextWord: valuedAt === letters.length - 1 }
}

function pathsAmong(
  operands: readonly number[],
  args: readonly string[],
  { rules, given }: { rules: ArgumentRules; given: ReadonlySet<string> },
): readonly number[] | undefined {
  if (rules.operands === 'none') return operands.length > 0 ? undefined : []
  if (rules.operands === 'texts') return []
  const isTextGiven = rules.textFirst?.unless.some((option) => given.has(option)) ?? true
  return operands.slice(isTextGiven ? 0 : 1).filter((at) => args[at] !== '-')
}
