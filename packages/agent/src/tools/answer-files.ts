/** Judges the files that an answer marks: it attaches the ones that its turn opened, wrote or received, where the turn may read files. */
import { errorText, type MarkedFile, type ModelMessage, markedFiles, namedAttachments, usedFilesIn } from '@sluice/sdk'
import { type CallScope, fileCallerOf } from '../turn/call-scope.ts'
import { READER } from './cut-result.ts'
import type { ToolExecutor } from './tool-call.ts'

/** Further files of one answer are not attached. */
const FILES_MAX = 50
/** The time of a change may be this much earlier than the clock of the daemon. */
const CLOCK_SLACK_MS = 1000

export interface AnswerOf {
  readonly text: string
  /** The messages that the turn read and made. The stored messages alone decide, so a resumed turn judges alike. */
  readonly messages: readonly ModelMessage[]
  readonly produced: readonly ModelMessage[]
}

/** Resolves to the files in the order of the answer. */
export async function judgeFiles(tools: ToolExecutor, scope: CallScope, answer: AnswerOf): Promise<MarkedFile[]> {
  const paths = markedFiles(answer.text)
  if (paths.length === 0) return []
  const known = knownFiles(answer)
  const judged: MarkedFile[] = []
  for (const [at, path] of paths.entries()) {
    const refusal = at < FILES_MAX ? await refusalOf(tools, scope, known, path) : `'${path}': an answer attaches at most ${FILES_MAX} files`
    judged.push({ path, ...(refusal !== undefined && { refusal }) })
  }
  return judged
}

interface KnownFiles {
  readonly paths: ReadonlySet<string>
  /** Files that were changed since are the work of the turn. */
  readonly sinceMs: number
}

function knownFiles({ messages, produced }: AnswerOf): KnownFiles {
  const paths = new Set<string>()
  let sinceMs = Number.POSITIVE_INFINITY
  for (const { role, content } of [...messages, ...produced])
    if (role === 'user')
      for (const part of content) if (part.type === 'text') for (const path of namedAttachments(part.text)) paths.add(path)
  for (const { role, content } of produced) {
    if (role !== 'tool') continue
    for (const part of content) {
      const note = usedFilesIn(part)
      for (const path of note.used ?? []) paths.add(path)
      sinceMs = Math.min(sinceMs, note.sinceMs ?? sinceMs)
    }
  }
  return { paths, sinceMs: sinceMs - CLOCK_SLACK_MS }
}

async function refusalOf(tools: ToolExecutor, scope: CallScope, known: KnownFiles, path: string): Promise<string | undefined> {
  const read = tools.prepare(scope, { id: READER, name: READER, input: JSON.stringify({ path }) })
  const workspace = scope.limits()?.workspace
  if (!workspace || tools.judge(scope, read).refusal !== undefined) return `'${path}': the agent may not call ${READER}`
  try {
    let name = path
    await using file = await workspace
      .as({ used: (used) => (name = used), caller: fileCallerOf(scope) })
      .open(path, { bytesMax: Number.POSITIVE_INFINITY })
    if (known.paths.has(name) || file.modifiedAtMs >= known.sinceMs) return undefined
    return `'${path}' was neither read nor written for this answer: the agent must call ${READER} on it first`
  } catch (error) {
    return errorText(error)
  }
}
