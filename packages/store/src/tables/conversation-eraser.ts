/** Erases a conversation from all tables, and then the remains of deleted rows from the files. */
import type { Erased, SessionStore } from '@sluice/sdk'
import { type EraseDialect, eraseConversation } from '../cold/conversation-eraser.ts'
import { copiesOf } from '../connection/copy-before-upgrade.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { BODY } from './body.ts'
import { DIALECT } from './dialect.ts'
import type { HistoryCache } from './history-cache.ts'
import { emptyLog, shrink } from './space.ts'

const ERASE: EraseDialect = {
  turnOf: 'session_id = $1',
  messageOf: "state <> 'done' AND session = $1 AND shard_of_session(session) = $2",
  alsoDead: [],
  ...BODY,
  hasBody: 'SELECT 1 FROM inbox WHERE number = $1 AND raw IS NOT NULL',
  holding: (_, steps) => steps(),
}

export interface ErasedFiles {
  readonly db: Database
  readonly writer: Writer
  readonly cache: HistoryCache
  readonly file: string
}

export async function eraseFromFiles(
  { db, writer, cache, file }: ErasedFiles,
  id: string,
  about: Parameters<SessionStore['erase']>[1],
): Promise<Erased | undefined> {
  const erased = await eraseConversation(createColdDatabase(db, writer, DIALECT), ERASE, id, about, () => cache.delete(id))
  if (!erased) return undefined
  await shrink(db, writer, 0)
  return { ...erased, purged: emptyLog(db), copies: copiesOf(file).map((copy) => copy.file) }
}
