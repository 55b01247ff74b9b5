/** Keeps the whole of a result that the model gets cut, as a file of its session, and says how to read on. */
import { type Logger, ownerFolder, sha256Hex } from '@sluice/sdk'
import { allowedTools, type CallScope, fileCallerOf } from '../turn/call-scope.ts'
import type { CallResult } from '../turn/turn.ts'
import { cutResult, READER } from './cut-result.ts'

/** `file_read` opens no larger file. */
const KEPT_CHARS_MAX = 3 * 1024 * 1024
const NAME_DIGITS = 12
const SEARCHER = 'grep'

interface Result {
  readonly tool: string
  readonly input: unknown
  readonly text: string
}

/** Never rejects: a result that cannot be kept is cut all the same. */
export async function keepResult(
  { log }: { readonly log: Logger },
  scope: CallScope,
  { tool, input, text }: Result,
): Promise<Pick<CallResult, 'output' | 'readOn'>> {
  const isRead = tool === READER
  const { output, nextLine } = cutResult(text, scope.resultLimit, isRead)
  if (nextLine === undefined) return { output }
  if (isRead) {
    return { output, readOn: readOnFile(input, nextLine) }
  }
  const path = await keptPath(log, scope, { tool, input, text })
  if (path === undefined) return { output }
  const search = mayCall(scope, SEARCHER) ? `, or search it with ${SEARCHER}` : ''
  const read = mayCall(scope, READER) ? `: read on with ${READER} path=${JSON.stringify(path)} offset=${nextLine}${search}` : ''
  return { output, readOn: `[The whole result is in ${path}${read}.]` }
}

/** Says how to read on after the first lines of a file. `input` is that of `file_read`. */
export function readOnFile(input: unknown, nextLine: number): string {
  const { path, offset = 1 } = input as { path: string; offset?: number }
  return `[Read on with ${READER} path=${JSON.stringify(path)} offset=${offset + nextLine - 1}.]`
}

async function keptPath(log: Logger, scope: CallScope, { tool, text }: Result): Promise<string | undefined> {
  const { session, turn } = scope
  const workspace = scope.limits()?.workspace
  if (session === null || !workspace) return undefined
  // The same result has the same name, also when an interrupted turn repeats the call.
  const path = `results/${ownerFolder(session)}/${tool}-${sha256Hex(text).slice(0, NAME_DIGITS)}.txt`
  try {
    await workspace.as({ caller: fileCallerOf(scope) }).write(path, Buffer.from(text.slice(0, KEPT_CHARS_MAX).toWellFormed()))
    return path
  } catch (error) {
    log.warn('the whole result of a tool could not be kept', { turn, tool, error })
    return undefined
  }
}

function mayCall(scope: CallScope, name: string): boolean {
  const allowed = allowedTools(scope)
  return scope.registry.offered.some((tool) => tool.name === name) && (allowed === undefined || allowed.includes(name))
}
