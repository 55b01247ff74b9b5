/** Reads the view of a store that the checks of procedures need. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Approval, AuditRow, OutboxRow, SopRun, Store } from '@sluice/sdk'
import type { Place } from '../place.ts'
import { open } from '../read-store.ts'
import type { Effect, SopsView } from './history.ts'
import { LINES_FILE } from './procedures.ts'

const PAGE = 1000

export async function readView(place: Place): Promise<SopsView> {
  const { dataDir } = place
  const store = await open(place)
  try {
    const { broken } = await store.sops.verify()
    const chain = broken ? [`audit record ${broken.number}: ${broken.why}`] : []
    return {
      problems: [...(await store.check()).map(({ detail }) => detail), ...chain],
      runs: await runsOf(store),
      audit: await auditOf(store),
      approvals: await approvalsOf(store),
      outbox: await outboxOf(store),
      lines: linesIn(join(dataDir, 'workspace', LINES_FILE)),
    }
  } finally {
    await store.close()
  }
}

const runsOf = ({ sops }: Store): Promise<SopRun[]> => pages((last) => sops.runs({ limit: PAGE, ...(last && { before: last.id }) }))

const auditOf = ({ sops }: Store): Promise<AuditRow[]> => pages((last) => sops.audit({ limit: PAGE, ...(last && { after: last.number }) }))

const approvalsOf = ({ approvals }: Store): Promise<Approval[]> =>
  pages((last) => approvals.list({ limit: PAGE, ...(last && { before: last }) }))

const outboxOf = ({ outbox }: Store): Promise<OutboxRow[]> =>
  pages((last) => outbox.list({ limit: PAGE, ...(last && { before: last.number }) }))

const linesIn = (file: string): Effect[] =>
  (existsSync(file) ? readFileSync(file, 'utf8') : '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [sop = '', step, mark = ''] = line.split(' ')
      return { sop, step: Number(step), mark }
    })

/** Reads all rows page by page; each page begins after the last row of the one before. */
async function pages<Row>(read: (last: Row | undefined) => Promise<readonly Row[]>): Promise<Row[]> {
  const rows: Row[] = []
  for (;;) {
    const page = await read(rows.at(-1))
    rows.push(...page)
    if (page.length < PAGE) return rows
  }
}
