/** Programs that only print files and data, with the arguments that keep them from doing more or following a link. */
import { type ArgumentRules, pathArguments } from './argument-rules.ts'

const READERS: Readonly<Record<string, ArgumentRules>> = {
  basename: { flags: 'az', valued: 's', long: 'multiple zero suffix=', operands: 'texts' },
  cat: {
    flags: 'AbeEnstTuv',
    long: 'number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank',
    operands: 'paths',
  },
  cut: {
    flags: 'nsz',
    valued: 'bcdf',
    long: 'bytes= characters= complement delimiter= fields= only-delimited output-delimiter= zero-terminated',
    operands: 'paths',
  },
  dirname: { flags: 'z', long: 'zero', operands: 'texts' },
  grep: {
    flags: 'abcEFGhHiIlLnoPqrsTUvwxyzZ',
    valued: 'ABCem',
    numbers: true,
    long:
      'after-context= basic-regexp before-context= binary-files= byte-offset color[=] colour[=] context= count exclude-dir= exclude= ' +
      'extended-regexp files-with-matches files-without-match fixed-strings ignore-case include= initial-tab invert-match ' +
      'line-buffered line-number line-regexp max-count= no-filename no-ignore-case no-messages null null-data only-matching ' +
      'perl-regexp quiet recursive regexp= silent text with-filename word-regexp',
    operands: 'paths',
    textFirst: { unless: ['-e', '--regexp'] },
  },
  head: { flags: 'qvz', valued: 'cn', numbers: true, long: 'bytes= lines= quiet silent verbose zero-terminated', operands: 'paths' },
  ls: {
    flags: '1aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ',
    valued: 'ITw',
    long:
      'all almost-all author classify[=] color[=] directory escape format= full-time group-directories-first hide= human-readable ' +
      'ignore-backups ignore= inode literal no-group numeric-uid-gid quote-name recursive reverse si size sort= time-style= time= width=',
    operands: 'paths',
  },
  nl: { flags: 'p', valued: 'bdfhilnsvw', operands: 'paths' },
  pwd: { flags: 'LP', operands: 'none' },
  stat: { flags: 'ft', valued: 'c', long: 'file-system format= printf= terse', operands: 'paths' },
  tac: { flags: 'br', valued: 's', long: 'before regex separator=', operands: 'paths' },
  tail: { flags: 'qvz', valued: 'cn', numbers: true, long: 'bytes= lines= quiet silent verbose zero-terminated', operands: 'paths' },
  tr: { flags: 'cCdst', long: 'complement delete squeeze-repeats truncate-set1', operands: 'texts' },
  wc: { flags: 'clLmw', long: 'bytes chars lines max-line-length total= words', operands: 'paths' },
}

/** Programs that print or ignore their arguments. */
const INERT: ReadonlySet<string> = new Set(['echo', 'false', 'true'])

/** The harmless arguments of `date`: formats of its output. Others may set the clock or read a file. */
const DATE = /^(?:\+.*|-[uR]+|-I(?:date|hours|minutes|seconds|ns)?|--(?:utc|universal|rfc-email|(?:iso-8601|rfc-3339)(?:=.*)?))$/s

/** The parts of a `find` expression that only select and print, each with its number of arguments. */
const FIND: ReadonlyMap<string, number> = new Map([
  ...entries(0, '! ( ) , -a -and -daystart -depth -empty -executable -false -ls -mount -not -o -or -print -print0 -prune -quit -readable'),
  ...entries(0, '-true -writable -xdev -noleaf'),
  ...entries(1, '-amin -atime -cmin -ctime -gid -group -iname -inum -ipath -iregex -iwholename -links -maxdepth -mindepth -mmin -mtime'),
  ...entries(1, '-name -path -perm -printf -regex -regextype -size -type -uid -used -user -wholename -xtype'),
])

function entries(words: number, names: string): [string, number][] {
  return names.split(' ').map((name) => [name, words])
}

/** True for a program that may read the folder in which it runs when no path is given. */
export const readsWorkingFolder = (program: string, args: readonly string[]): boolean =>
  program === 'find' || program === 'ls' || (program === 'grep' && args.some((arg) => /^-.*r/.test(arg)))

/** True for a program whose harmless arguments are listed here. */
export const hasReadOnlyForm = (program: string): boolean =>
  INERT.has(program) || program === 'date' || program === 'find' || Object.hasOwn(READERS, program)

/** Returns the indices of the arguments that are paths, or undefined if the program may do more than read with these arguments. */
export function readOnlyPaths(program: string, args: readonly string[]): readonly number[] | undefined {
  if (INERT.has(program)) return []
  if (program === 'date') return args.every((arg) => DATE.test(arg)) ? [] : undefined
  if (program === 'find') return findPaths(args)
  const rules = Object.hasOwn(READERS, program) ? READERS[program] : undefined
  return rules && pathArguments(args, rules)
}

function findPaths(args: readonly string[]): readonly number[] | undefined {
  const begin = args[0] === '-P' ? 1 : 0
  const start = args.findIndex((arg, at) => at >= begin && /^[-(!,)]/.test(arg))
  const end = start < 0 ? args.length : start
  for (let at = end; at < args.length; at++) {
    const words = FIND.get(args[at] ?? '')
    if (words === undefined) return undefined
    at += words
  }
  return args.slice(begin, end).map((_, at) => begin + at)
}
