/** The tools `grep` and `glob`. They open files by the rules of the workspace, and their patterns run in a thread with a time limit. */
import { isFileOfOthers, SerialQueue, signalScope, withoutTrailing } from '@sluice/kit'
import { AppError, defineTool, type Host, type Tool, type ToolContext, type Workspace, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { globSource } from './glob-pattern.ts'
import { type Match, type Patterns, SearchThread } from './search-thread.ts'
import { FILE_BYTES_MAX, isBinary, isFromOthers, onOneLine, pathInput, SHOWN_CHARS_MAX } from './text-file.ts'
import { type Keep, type VisitedFolder, walk } from './walk.ts'

const PATTERN_CHARS_MAX = 2000
const SEARCH_MS_MAX = 10_000
const FILES_MAX = 100_000
const SEARCHES_WAITING_MAX = 64
const LARGE_SHOWN_MAX = 5
const RESULTS_DEFAULT = 100
const RESULTS_MAX = 1000

const patternInput = (description: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(PATTERN_CHARS_MAX), v.description(description))
const limitInput = v.optional(v.pipe(whole(1, RESULTS_MAX), v.description('The largest number of results')), RESULTS_DEFAULT)
const ignoredInput = v.optional(v.pipe(v.boolean(), v.description('Also what .gitignore names')), false)
const LEAVES_OUT = 'Files that .gitignore names were left out: ignored = true includes them'

/** Returns both tools. Searches of one daemon run one after the other, because each takes a thread. */
export function searchTools(host: Pick<Host, 'clock'>): readonly [Tool, Tool] {
  const queue = new SerialQueue({ name: 'a search', tasksMax: SEARCHES_WAITING_MAX })
  const start = (search: SearchOptions, visit: Visit) => queue.run(() => run(host, search, visit), search.context.signal)
  return [grep(start), glob(start)]
}

interface SearchOptions {
  readonly path: string
  /** Whether files that a `.gitignore` names are found too. */
  readonly ignored: boolean
  readonly patterns: Patterns
  readonly context: Pick<ToolContext, 'workspace' | 'signal'>
}

/** Takes the files of one folder whose names match; returns false when it has enough. */
type Visit = (paths: readonly string[], thread: SearchThread) => Promise<boolean>

interface Seen {
  /** The reason why a search ended before it saw all files; absent if it did see them, or its visitor had enough. */
  readonly ended?: string
  /** Whether a `.gitignore` has left out files. */
  readonly leavesOut: boolean
}

type Start = (search: SearchOptions, visit: Visit) => Promise<Seen>

async function run({ clock }: Pick<Host, 'clock'>, search: SearchOptions, visit: Visit): Promise<Seen> {
  const { patterns, ignored } = search
  const { workspace, signal } = search.context
  const path = withoutTrailing(search.path, '/') || search.path
  using scope = signalScope([signal], SEARCH_MS_MAX, clock)
  await using thread = new SearchThread(patterns, scope.signal)
  const keep: Keep = (paths, rules) => thread.keep(paths, rules)
  let last = path
  let leavesOut = false
  try {
    let files = 0
    for await (const folder of walk(workspace, path, ignored ? undefined : keep)) {
      last = folder.prefix || '.'
      leavesOut ||= folder.leavesOut
      const named = await matching(thread, folder, path)
      files += folder.names.length
      if (!(await visit(named, thread))) return { leavesOut }
      if (files > FILES_MAX) return { leavesOut, ended: `The search ended after ${FILES_MAX} files, at ${onOneLine(last)}: give it a path` }
    }
    return { leavesOut }
  } catch (error) {
    if (!scope.timedOut) throw error
    const ended = `The search ended after ${SEARCH_MS_MAX / 1000} s, at ${onOneLine(last)}: narrow its path, or simplify its pattern`
    return { leavesOut, ended }
  }
}

/** Returns the paths of the files in a folder that the pattern for names matches below the folder of the search. */
async function matching(thread: SearchThread, { prefix, names }: VisitedFolder, path: string): Promise<readonly string[]> {
  const base = path === '.' ? '' : `${path}/`
  const below = prefix.startsWith(base) ? prefix.slice(base.length) : ''
  const found = await thread.filter(names.map((name) => `${below}${name}`))
  return found.map((name) => `${prefix}${name.slice(below.length)}`)
}

const glob = (start: Start): Tool =>
  defineTool({
    name: 'glob',
    description: 'Finds files of the workspace by name. .git, node_modules and what .gitignore names are left out.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    // Senders choose names of files; `run` reports the ones among the results.
    untrusted: ({ path }) => (isFileOfOthers(path) ? `folder ${path}` : undefined),
    input: v.object({
      pattern: patternInput('Such as *.md, or src/**/*.{ts,tsx}'),
      path: v.optional(pathInput('The folder to search'), '.'),
      ignored: ignoredInput,
      limit: limitInput,
    }),
    async run({ pattern, path, ignored, limit }, context) {
      const found: string[] = []
      const room = new Room()
      const { ended, leavesOut } = await start({ path, ignored, patterns: { names: globSource(pattern) }, context }, async (paths) => {
        for (const one of paths) {
          if (found.length > limit || !room.take(onOneLine(one))) return false
          found.push(one)
        }
        return true
      })
      const shown = found.slice(0, limit)
      const others = shown.find(isFileOfOthers)
      context.report?.({ data: shown.join('\n'), ...(others !== undefined && { untrusted: `file ${others}` }) })
      const notes = [
        ...(shown.length === 0 ? ['No file matches', ...(leavesOut ? [LEAVES_OUT] : [])] : []),
        ...(found.length > limit || room.isFull ? [`Only the first ${shown.length} files are shown: narrow the search`] : []),
        ...(ended === undefined ? [] : [ended]),
      ]
      return [...shown.map(onOneLine), ...notes.map((note) => `[${note}]`)].join('\n')
    },
  })

const grep = (start: Start): Tool =>
  defineTool({
    name: 'grep',
    description:
      'Finds lines in the text files of the workspace. .git, node_modules, what .gitignore names, binary files and files over 10 MiB are left out.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: ({ path }) => (isFromOthers(path) ? `file ${path}` : undefined),
    input: v.object({
      pattern: patternInput('A JavaScript regular expression; (?i) at its start ignores case'),
      path: v.optional(pathInput('The file or folder to search'), '.'),
      glob: v.optional(patternInput('Only files with such names, as *.ts')),
      ignored: ignoredInput,
      limit: limitInput,
    }),
    async run({ pattern, path, glob: names, ignored, limit }, context) {
      const { workspace } = context
      const ignoresCase = pattern.startsWith('(?i)')
      const lines = { source: ignoresCase ? pattern.slice('(?i)'.length) : pattern, flags: ignoresCase ? 'i' : '' }
      const found = new Found(limit)
      const patterns = { lines, names: names === undefined ? undefined : globSource(names) }
      const seen = await start({ path, ignored, patterns, context }, async (paths, thread) => {
        for (const one of paths) {
          thread.check()
          const bytes = await readable(workspace, one, { isOnly: one === path, found })
          if (!bytes) continue
          const { matches, more } = await thread.search(bytes, found.room)
          if (!found.add(one, matches, more)) return false
        }
        return true
      })
      const others = found.paths.find(isFromOthers)
      context.report?.({ data: found.lines.join('\n'), ...(others !== undefined && { untrusted: `file ${others}` }) })
      return found.text(seen)
    },
  })

/** Counts what an answer shows. */
class Room {
  #chars = 0
  isFull = false

  /** Returns false for a line that has no room. */
  take(line: string): boolean {
    this.#chars += line.length + 1
    this.isFull = this.#chars > SHOWN_CHARS_MAX
    return !this.isFull
  }
}

/** The lines that a search has found. */
class Found {
  readonly lines: string[] = []
  /** The files of the lines. */
  readonly paths: string[] = []
  /** Files that are too large to be searched. */
  readonly large: string[] = []
  readonly #limit: number
  readonly #chars = new Room()
  #isCut = false

  constructor(limit: number) {
    this.#limit = limit
  }

  get room(): number {
    return this.#limit - this.lines.length
  }

  /** Returns false without room for more. */
  add(path: string, matches: readonly Match[], more: boolean): boolean {
    if (matches.length > 0) this.paths.push(path)
    for (const { line, text, bytes } of matches) {
      const shown = `${onOneLine(path)}:${line}:${bytes ? ` [bytes ${bytes[0]}-${bytes[1]}]` : ''} ${text}`
      if (!this.#chars.take(shown)) {
        this.#isCut = true
        return false
      }
      this.lines.push(shown)
    }
    this.#isCut = more
    return !more
  }

  text({ ended, leavesOut }: Seen): string {
    const { lines, paths, large } = this
    const shownLarge = large.slice(0, LARGE_SHOWN_MAX).map(onOneLine).join(', ')
    const notes = [
      lines.length === 0 ? 'No line matches' : `${lines.length} lines in ${paths.length} files`,
      ...(lines.length === 0 && leavesOut ? [LEAVES_OUT] : []),
      ...(this.#isCut ? ['There are more: narrow the search with path or glob'] : []),
      ...(large.length > 0 ? [`Not searched, over 10 MiB: ${shownLarge}${large.length > LARGE_SHOWN_MAX ? ' and others' : ''}`] : []),
      ...(ended === undefined ? [] : [ended]),
    ]
    return [...lines, ...notes.map((note) => `[${note}]`)].join('\n')
  }
}

/** Resolves to the bytes of a text file; undefined for a file that a search leaves out. Throws when it is the only file of the search. */
async function readable(
  workspace: Workspace,
  path: string,
  { isOnly, found }: { readonly isOnly: boolean; readonly found: Found },
): Promise<Uint8Array | undefined> {
  try {
    const bytes = await workspace.read(path, { bytesMax: FILE_BYTES_MAX })
    return isBinary(bytes) ? undefined : bytes
  } catch (error) {
    if (isOnly || !(error instanceof AppError)) throw error
    if (error.code === 'too_large') found.large.push(path)
    // The file may be gone, or belong to another person.
    return undefined
  }
}
