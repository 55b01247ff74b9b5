/** Keeps the whole of a result that the model gets cut, as a file of its session or turn, and says how to read on. */
import { AppError, type FileShare, type Logger, resultsFolder, sha256Hex } from '@sluice/sdk'
import { allowedTools, type CallScope, fileCallerOf } from '../turn/call-scope.ts'
import type { Shares } from '../turn/shares.ts'
import type { CallResult } from '../turn/turn.ts'
import { cutResult, READER } from './cut-result.ts'

/** `file_read` opens no larger file. */
const KEPT_CHARS_MAX = 3 * 1024 * 1024
/** 128 bits, so that the writer of two pages cannot give both results one name. */
const NAME_DIGITS = 32
const SEARCHER = 'grep'

interface Result {
  readonly tool: string
  readonly input: unknown
  readonly text: string
}

export interface KeepResultDeps {
  readonly log: Logger
  /** What each client keeps. Absent: no client has a share. */
  readonly shares?: Pick<Shares, 'ofFiles'> | undefined
}

/** Returns the share that the results of a call count for. */
export const fileShareOf = ({ shares }: Pick<KeepResultDeps, 'shares'>, scope: CallScope): FileShare =>
  (scope.limited && shares?.ofFiles(scope.limited, fileCallerOf(scope).owner)) ?? {}

/** Never rejects: a result that cannot be kept is cut all the same. */
export async function keepResult(
  deps: KeepResultDeps,
  scope: CallScope,
  { tool, input, text }: Result,
): Promise<Pick<CallResult, 'output' | 'readOn'>> {
  const isRead = tool === READER
  const { output, nextLine } = cutResult(text, scope.resultLimit, isRead)
  if (nextLine === undefined) return { output }
  if (isRead) {
    return { output, readOn: readOnFile(input, nextLine) }
  }
  const written = await keptPath(deps, scope, { tool, input, text })
  if (written === undefined) return { output }
  if (written === 'no room') return { output, readOn: '[The rest was not kept: the attachments of this person leave no room for it.]' }
  const { path } = written
  const search = mayCall(scope, SEARCHER) ? `, or search it with ${SEARCHER}` : ''
  const read = mayCall(scope, READER) ? `: read on with ${READER} path=${JSON.stringify(path)} offset=${nextLine}${search}` : ''
  const kept =
    text.length > KEPT_CHARS_MAX ? `The first ${KEPT_CHARS_MAX.toLocaleString('en-US')} characters of the result are` : 'The result is'
  return { output, readOn: `[${kept} in ${path}${read}.]` }
}

/** Says how to read on after the first lines of a file. `input` is that of `file_read`. */
export function readOnFile(input: unknown, nextLine: number): string {
  const { path, offset = 1 } = input as { path: string; offset?: number }
  return `[Read on with ${READER} path=${JSON.stringify(path)} offset=${offset + nextLine - 1}.]`
}

/** Resolves to the path of the kept result; undefined when it cannot be kept for another reason than its share. */
async function keptPath(
  deps: KeepResultDeps,
  scope: CallScope,
  { tool, text }: Result,
): Promise<{ readonly path: string } | 'no room' | undefined> {
  const { session, turn, alive } = scope
  const workspace = scope.limits()?.workspace
  // Outside of a turn no model reads on.
  if (!alive || !workspace) return undefined
  // The same result has the same name, also when an interrupted turn repeats the call.
  const path = `${resultsFolder(session, turn)}/${tool}-${sha256Hex(text).slice(0, NAME_DIGITS)}.txt`
  try {
    const own = workspace.as({ caller: fileCallerOf(scope), ...fileShareOf(deps, scope) })
    await own.write(path, Buffer.from(text.slice(0, KEPT_CHARS_MAX).toWellFormed()))
    return { path }
  } catch (error) {
    deps.log.warn('the whole result of a tool could not be kept', { turn, tool, error })
    return error instanceof AppError && error.code === 'share_used' ? 'no room' : undefined
  }
}

function mayCall(scope: CallScope, name: string): boolean {
  const allowed = allowedTools(scope)
  return scope.registry.offered.some((tool) => tool.name === name) && (allowed === undefined || allowed.includes(name))
}
