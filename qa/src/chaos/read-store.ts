/** What a store holds, as the checks look at it; of a copy where a daemon may yet open the file. */
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '@sluice/kit'
import { type InboxRow, type OutboxRow, replyLane, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import type { NoticeSeen, StoreView } from './history.ts'
import { LINES_FILE, markIn, partsIn } from './marks.ts'

const FILE = 'sluice.db'
const PAGE = 1000
const EVERYTHING = 1_000_000
/** Of a message that answers a question, in the place of a session. */
const ANSWER = 'approval:'
/** How what people are told of a question begins. */
const NOTICES: readonly { readonly says: NoticeSeen['says']; readonly head: string }[] = [
  { says: 'approved', head: 'Approved by ' },
  { says: 'rejected', head: 'Rejected by ' },
  { says: 'cancelled', head: 'Withdrawn: ' },
  { says: 'late', head: 'Already ' },
]

export const open = (dataDir: string): Store => openStore({ file: join(dataDir, FILE), clock: systemClock, log: testHost().log })

/** As a crash left it: the next daemon finds the original untouched. Nothing may have the file open. */
export async function readCopy<View>(dataDir: string, read: (dataDir: string) => Promise<View>): Promise<View> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-copy-'))
  try {
    for (const name of [FILE, `${FILE}-wal`]) if (existsSync(join(dataDir, name))) copyFileSync(join(dataDir, name), join(dir, name))
    return await read(dir)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

export async function readStore(dataDir: string): Promise<StoreView> {
  const store = open(dataDir)
  try {
    const unfinished = await store.turns.unfinished(EVERYTHING)
    const outbox = await all<OutboxRow>(store.outbox)
    return {
      problems: (await store.check()).map(({ detail }) => detail),
      inbox: (await all<InboxRow>(store.inbox)).map(({ messageId: id, ...row }) => ({
        ...row,
        id,
        isAnswer: row.session.startsWith(ANSWER),
      })),
      outbox: outbox.map(({ text, error, ...row }) => ({
        ...row,
        parts: partsIn(text ?? ''),
        isCut: error?.includes('stopped while this was being sent') ?? false,
      })),
      questions: await questionsOf(store),
      notices: outbox.flatMap((row) => {
        const notice = NOTICES.find(({ head }) => row.text?.startsWith(head))
        return notice ? [{ place: replyLane(row), says: notice.says }] : []
      }),
      lines: linesIn(join(dataDir, 'workspace', LINES_FILE)),
      sessions: await sessionsOf(store),
      unfinished: unfinished.flatMap(({ input }) => markIn(input) ?? []),
      failed: failedOf(join(dataDir, FILE)),
    }
  } finally {
    await store.close()
  }
}

const linesIn = (file: string): string[] => (existsSync(file) ? partsIn(readFileSync(file, 'utf8')).map(({ mark }) => mark) : [])

async function questionsOf({ approvals }: Store): Promise<StoreView['questions']> {
  const rows = await approvals.list({ limit: EVERYTHING })
  return rows.map(({ message, prompts: [prompt], state }) => ({
    mark: markIn(message) ?? '',
    place: prompt ? replyLane(prompt) : '',
    state,
  }))
}

/** No port lists turns: their callers know the ids, and here some were never told. */
function failedOf(file: string): StoreView['failed'] {
  const db = new DatabaseSync(file, { readOnly: true })
  const rows = db.prepare("SELECT input, attempts FROM turns WHERE status = 'failed' AND inbox IS NULL").all()
  db.close()
  return rows.flatMap(({ input, attempts }) => {
    const mark = markIn(String(input))
    return mark === undefined ? [] : [{ mark, attempts: Number(attempts) }]
  })
}

/** Oldest first. */
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
