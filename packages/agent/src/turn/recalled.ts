/** The memories that fit a message. The model reads them before its text, without asking for them. */
import { fileOwner, frameUntrusted, type Logger, type ModelMessage, memoryOwner, type Services, sharedRoom } from '@sluice/sdk'
import { notesIn } from '../history/message-notes.ts'
import { allowedTools, identityOf, personFor } from './call-scope.ts'
import type { TurnScope } from './turn-scope.ts'

export const MEMORY_TOOL = 'memory_recall'
const SOURCE = 'memories'

export interface RecallDeps {
  /** Finds the memories of a client that fit a text. Absent: the model recalls only what it asks for. */
  readonly recall?: Services['recall'] | undefined
  readonly log: Logger
}

/**
 * Resolves to the note for the message of a turn; undefined when no memory fits, when the earlier messages show all that do, or when the
 * agent or the turn may not use memories. In the conversation of a room these are the memories of the room. A conversation of another person
 * gets none, and so does that of one person in a room, where others read the answers.
 * Rejects with the reason of the turn's cancellation; a turn whose memories cannot be read goes on without them.
 */
export async function recalledNote(
  { recall, log }: RecallDeps,
  { turn, registry, limits }: TurnScope,
  before: readonly ModelMessage[],
): Promise<string | undefined> {
  const { caller = turn.owner, session, text, cancellation } = turn
  const allowed = allowedTools({ limits, tools: turn.tools })
  const mayRecall = registry.offered.some(({ name }) => name === MEMORY_TOOL) && (allowed?.includes(MEMORY_TOOL) ?? true)
  const isOwn = sharedRoom(session) !== undefined || (!turn.isInRoom && fileOwner(session, caller) === fileOwner(null, caller))
  const { caller: ofAgent } = identityOf(turn.agent, turn.client, caller)
  const reader = memoryOwner({ session, caller: ofAgent, person: personFor(turn.agent, turn.limited) })
  if (!recall || caller === undefined || reader === undefined || !mayRecall || !isOwn) return undefined
  const found = await cancellation.race(
    recall(reader, text).catch((error: unknown) => {
      log.warn('memories could not be recalled', { turn: turn.id, error })
      return []
    }),
  )
  const known = before.flatMap((message) => notesIn(message).recalled ?? [])
  const news = found.filter((memory) => !known.some((note) => note.includes(memory.text)))
  const own = news.filter(({ untrusted }) => !untrusted).map((memory) => memory.text)
  const ofOthers = news.filter(({ untrusted }) => untrusted).map((memory) => memory.text)
  if (news.length === 0) return undefined
  return [
    '[Memories that may matter here:',
    ...own,
    ...(ofOthers.length > 0 ? [frameUntrusted(SOURCE, ofOthers.join('\n'))] : []),
    ']',
  ].join('\n')
}
