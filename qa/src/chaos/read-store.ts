/** Reads the view of a store that the checks need. Reads a copy if a daemon will open the file again. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '@sluice/kit'
import { type InboxRow, type OutboxRow, replyLane, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { secretKeyIds } from '@sluice/store/secret-box'
import { openPostgresStore } from '@sluice/store-postgres/open-store'
import { testHost } from '@sluice/testkit/host'
import pg from 'pg'
import type { NoticeSeen, StoreView } from './history.ts'
import { LINES_FILE, markIn, marksIn, partsIn } from './marks.ts'
import type { Place } from './place.ts'

const FILE = 'sluice.db'
const PAGE = 1000
const EVERYTHING = 1_000_000
/** How the lane of a message begins that answers an approval. */
const ANSWER_LANE = 'approval:'
/** The first words of each notice about the end of a question. */
const NOTICES: readonly { readonly says: NoticeSeen['says']; readonly head: string }[] = [
  { says: 'approved', head: 'Approved by ' },
  { says: 'rejected', head: 'Rejected by ' },
  { says: 'cancelled', head: 'Withdrawn: ' },
  { says: 'late', head: 'Already ' },
]

export const open = async ({ dataDir, database }: Place): Promise<Store> =>
  database === undefined
    ? openStore({ file: join(dataDir, FILE), clock: systemClock, log: testHost().log })
    : openPostgresStore({ url: database, node: 'reader', keyIds: secretKeyIds(dataDir) })

/**
 * Reads a copy, so that the next daemon finds the original as the crash left it. No process may have the file open. A database server
 * recovers by itself, so that nothing is copied.
 */
export async function readCopy<View>(place: Place, read: (place: Place) => Promise<View>): Promise<View> {
  if (place.database !== undefined) return read(place)
  const { dataDir } = place
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-copy-'))
  try {
    for (const name of [FILE, `${FILE}-wal`]) if (existsSync(join(dataDir, name))) copyFileSync(join(dataDir, name), join(dir, name))
    return await read({ ...place, dataDir: dir })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export async function readStore(place: Place): Promise<StoreView> {
  const { dataDir } = place
  const store = await open(place)
  try {
    const turns = await turnsOf(place)
    const outbox = await all<OutboxRow>(store.outbox)
    return {
      problems: (await store.check()).map(({ detail }) => detail),
      inbox: (await all<InboxRow>(store.inbox)).map(({ messageId: id, ...row }) => ({
        ...row,
        id,
        isAnswer: row.session.startsWith(ANSWER_LANE),
      })),
      outbox: outbox.map(({ text, error, ...row }) => ({
        ...row,
        parts: partsIn(text ?? ''),
        isInterrupted: error?.includes('stopped while this was being sent') ?? false,
        error,
      })),
      questions: await questionsOf(store),
      notices: outbox.flatMap((row) => {
        const notice = NOTICES.find(({ head }) => row.text?.startsWith(head))
        return notice ? [{ place: replyLane(row), says: notice.says }] : []
      }),
      lines: linesOn({ dataDir }),
      sessions: await sessionsOf(store),
      summaries: await summariesOf(store),
      unfinished: turns.flatMap(({ input, status }) => (status === 'failed' ? [] : (markIn(input) ?? []))),
      failed: turns.flatMap(({ input, attempts, status }) => {
        const mark = status === 'failed' ? markIn(input) : undefined
        return mark === undefined ? [] : [{ mark, attempts }]
      }),
    }
  } finally {
    await store.close()
  }
}

/** The marks of the lines that approved calls wrote on a machine. */
export const linesOn = ({ dataDir }: Pick<Place, 'dataDir'>): string[] => linesIn(join(dataDir, 'workspace', LINES_FILE))

const linesIn = (file: string): string[] => (existsSync(file) ? partsIn(readFileSync(file, 'utf8')).map(({ mark }) => mark) : [])

async function questionsOf({ approvals }: Store): Promise<StoreView['questions']> {
  const rows = await approvals.list({ limit: EVERYTHING })
  return rows.map(({ message, prompts: [prompt], state }) => ({
    mark: markIn(message) ?? '',
    place: prompt ? replyLane(prompt) : '',
    state,
  }))
}

interface TurnSeen {
  readonly input: string
  readonly status: string
  readonly attempts: number
}

const TURNS = "SELECT input, status, attempts FROM turns WHERE inbox IS NULL AND (ended_at IS NULL OR status = 'failed')"

/**
 * The turns of direct requests that have not ended or failed. Reads the table itself: the store finds turns only by id, and some callers
 * never got the id of their turn.
 */
async function turnsOf({ dataDir, database }: Place): Promise<readonly TurnSeen[]> {
  const rows = database === undefined ? rowsOf(join(dataDir, FILE)) : await rowsOn(database)
  return rows.map(({ input, status, attempts }) => ({ input: String(input), status: String(status), attempts: Number(attempts) }))
}

function rowsOf(file: string): readonly Record<string, unknown>[] {
  const db = new DatabaseSync(file, { readOnly: true })
  const rows = db.prepare(TURNS).all()
  db.close()
  return rows
}

async function rowsOn(url: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=sluice' })
  await client.connect()
  const { rows } = await client.query(TURNS)
  await client.end()
  return rows
}

/** All rows, oldest first. */
async function all<Row extends { readonly number: number }>(box: {
  list(filter: { limit: number; before?: number }): Promise<Row[]>
}): Promise<Row[]> {
  const rows: Row[] = []
  for (;;) {
    const before = rows.at(-1)?.number
    const page = await box.list({ limit: PAGE, ...(before !== undefined && { before }) })
    rows.push(...page)
    if (page.length < PAGE) return rows.reverse()
  }
}

async function sessionsOf({ sessions }: Store): Promise<string[][]> {
  const rows = await sessions.list({ limit: EVERYTHING })
  return Promise.all(
    rows.map(async ({ id }) => {
      const asked = (await sessions.history(id, EVERYTHING)).filter(({ role }) => role === 'user')
      return asked.flatMap(({ content }) => markIn(JSON.stringify(content)) ?? [])
    }),
  )
}

async function summariesOf({ sessions }: Store): Promise<StoreView['summaries']> {
  const rows = await sessions.list({ limit: EVERYTHING })
  const summaries = rows.map(async ({ id }) => {
    const summary = await sessions.summary(id)
    if (!summary) return []
    const covered = (await sessions.history(id, EVERYTHING)).slice(0, summary.upTo)
    return [{ covered: marksIn(JSON.stringify(covered)), named: marksIn(summary.text) }]
  })
  return (await Promise.all(summaries)).flat()
}
