/** What a command can do: whether it only looks at the workspace, or more. */
import { resolve } from 'node:path'
import type { Risk } from '@sluice/sdk'
import { isWithin, pathsIn } from './forbidden-path.ts'
import { type Segment, splitCommand, type Word } from './split-command.ts'
import { unsafeArgument } from './unsafe-arguments.ts'

/** Programs that only print, and arguments with which they would do more or follow links. */
const READERS: Readonly<Record<string, RegExp | null>> = {
  basename: null,
  cat: null,
  cut: null,
  // anything but a format or a choice of how to print it could set the clock
  date: /^(?!\+|-[uR]$|-I|--(?:utc|iso-8601|rfc-3339|rfc-email)\b)/,
  dirname: null,
  echo: null,
  false: null,
  find: /^-(?:L|H|follow|files0-from)$/,
  grep: /^-[A-Za-z]*R|^--dereference-recursive$/,
  head: null,
  ls: null,
  nl: null,
  pwd: null,
  stat: null,
  tac: null,
  tail: null,
  tr: null,
  true: null,
  wc: /^--files0-from/,
}

/**
 * `read` for commands of nothing but plain readers whose every argument stays in the workspace by its spelling, `execute`
 * for the rest. Never throws; what cannot be understood is `execute`.
 */
export function commandRisk(command: string, root: string): Risk {
  let segments: Segment[]
  try {
    segments = splitCommand(command)
  } catch {
    return 'execute'
  }
  return segments.length > 0 && segments.every((segment) => isReading(segment, root)) ? 'read' : 'execute'
}

function isReading([program, ...args]: Segment, root: string): boolean {
  if (!program?.plain || !Object.hasOwn(READERS, program.text)) return false
  const more = READERS[program.text]
  const texts = args.map(({ text }) => text)
  if (unsafeArgument(program.text, texts) !== undefined || texts.some((text) => more?.test(text))) return false
  return args.every((word) => staysInside(word, root))
}

function staysInside({ text }: Word, root: string): boolean {
  if (text.startsWith('-') && /[/~]/.test(text)) return false
  return pathsIn(text).every((path) => !path.startsWith('~') && !path.split('/').includes('..') && isWithin(resolve(root, path), root))
}
