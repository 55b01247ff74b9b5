/** Checks that rows which refer to each other exist, and that the server keeps what it acknowledges. */
import type { StoreProblem } from '@sluice/sdk'
import type { Database } from './database.ts'

const DANGLING = [
  [
    'replies without the message that they answer',
    'SELECT count(*) AS count FROM outbox WHERE inbox IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inbox WHERE number = outbox.inbox)',
  ],
  [
    'bodies without their message',
    'SELECT count(*) AS count FROM inbox_bodies AS body WHERE NOT EXISTS (SELECT 1 FROM inbox WHERE number = body.number)',
  ],
  [
    'messages without their session',
    'SELECT count(*) AS count FROM messages WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE number = session)',
  ],
  [
    'running messages without their turn',
    "SELECT count(*) AS count FROM inbox WHERE ended_at IS NULL AND state = 'running' AND NOT EXISTS (SELECT 1 FROM turns WHERE id = turn_id)",
  ],
] as const
const UNSAFE = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"

/** Resolves to the problems; empty when all is well. */
export async function checkDatabase(db: Database): Promise<readonly StoreProblem[]> {
  const problems: StoreProblem[] = []
  for (const { name } of await db.all<{ name: string }>(UNSAFE)) {
    problems.push({ detail: `the server runs with ${name} = off: a crash of its machine loses acknowledged messages` })
  }
  for (const [what, text] of DANGLING) {
    const { count = 0 } = (await db.get<{ count: number }>(text)) ?? {}
    if (count > 0) problems.push({ detail: `${count} ${what}` })
  }
  return problems
}
