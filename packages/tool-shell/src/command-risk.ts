/** What a command can do: whether it only looks at the workspace, or more. */
import { realpathSync, statSync } from 'node:fs'
import { relative, resolve } from 'node:path'
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
  grep: /^-[A-Za-z\d]*[Rf]|^--de|^--fi/,
  head: null,
  ls: /^-[A-Za-z\d]*L|^--de/,
  nl: null,
  pwd: null,
  stat: null,
  tac: null,
  tail: null,
  tr: null,
  true: null,
  wc: /^--f/,
}

/**
 * `read` for commands of nothing but plain readers whose every argument stays in the workspace, links followed, `execute`
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

function staysInside({ text, patternAt }: Word, root: string): boolean {
  // What a pattern matches is not known yet, and may be a link.
  if (patternAt >= 0 || (text.startsWith('-') && /[/~]/.test(text))) return false
  return pathsIn(text).every((path) => !path.startsWith('~') && !path.split('/').includes('..') && leadsInside(resolve(root, path), root))
}

/** False for a link, symbolic or hard, at whatever place in the path; what is not there leads nowhere. */
function leadsInside(path: string, root: string): boolean {
  if (!isWithin(path, root)) return false
  const status = statSync(path, { throwIfNoEntry: false })
  if (!status) return true
  return realpathSync(path) === resolve(realpathSync(root), relative(root, path)) && (status.isDirectory() || status.nlink === 1)
}
