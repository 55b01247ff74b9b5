/** Erases a conversation from all tables. The server's vacuum overwrites the deleted rows later, and its log keeps them for a while. */
import type { Erased, SessionStore } from '@sluice/sdk'
import { all, type EraseDialect, eraseConversation, first } from '@sluice/store/shared'
import { isAliveProcess } from '../cluster/live-process.ts'
import type { Database } from '../connection/database.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { DIALECT } from './dialect.ts'

/** Holds the session until the transaction ends, so that no turn that a client waits for reads what is being erased. */
const HOLD_SESSION = `
  INSERT INTO leases (name, epoch, process) VALUES ('session/' || $1::text, nextval('epochs'), 'erases')
  ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, process = excluded.process, turn = NULL, owner = NULL
    WHERE NOT ${isAliveProcess('leases.process')}
  RETURNING epoch`
const LEAVE_SESSION = 'DELETE FROM leases WHERE epoch = $1'
const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done' AND session <> $2"

export const ERASE: EraseDialect = {
  turnOf: 'hashtextextended(session_id, 0) = hashtextextended($1, 0) AND session_id = $1',
  messageOf: 'ended_at IS NULL AND shard = $2 AND session = $1',
  alsoDead: ['marked'],
  body: `
    DELETE FROM inbox_bodies USING inbox AS first
    WHERE inbox_bodies.number = $1 AND first.number = $1 AND (session IN ('', $2) OR state = 'done') AND NOT EXISTS (${NEEDING})`,
  hasBody: 'SELECT 1 FROM inbox_bodies WHERE number = $1',
  *holding(id, steps) {
    const held = yield* first<{ epoch: number }>(HOLD_SESSION, id)
    if (!held) return undefined
    const result = yield* steps()
    yield* all(LEAVE_SESSION, held.epoch)
    return result
  },
}

export async function eraseFromDatabase(
  db: Database,
  id: string,
  about: Parameters<SessionStore['erase']>[1],
): Promise<Erased | undefined> {
  const erased = await eraseConversation(createColdDatabase(db, DIALECT), ERASE, id, about)
  return erased && { ...erased, purged: false, copies: [] }
}
