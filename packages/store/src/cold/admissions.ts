/** The spending of clients, and who is held back. Each message asks for admission, which each database decides with its own statements. */
import type { AdmissionStore, CountedLimits, Exceeded, HeldBack, LoopState } from '@sluice/sdk'
import { type ColdDatabase, first, type Steps, statement } from './cold-database.ts'

export const DAY_MS = 86_400_000

const LAST = 'SELECT place, at FROM admissions WHERE client = $1 ORDER BY place DESC LIMIT 1'
const SPEND = `
  INSERT INTO spending (client, day, usd) VALUES ($1, $2, $3) ON CONFLICT (client, day) DO UPDATE SET usd = spending.usd + excluded.usd`
const SPENT = 'SELECT usd FROM spending WHERE client = $1 AND day = $2'
// A record that begins in the future was made before the clock was set back.
export const RECENT = `
  SELECT 1 FROM held_back WHERE client = $1 AND cause = $2 AND news > CAST($3 AS float8) - CAST($4 AS float8) AND news <= $3`
const HELD = `${RECENT} AND until > $3`
// The row of a session has the answer that was followed last. In a shared room it also has the number of the last slow message: the quick
// messages of a writer count from there on, also when other writers wrote some of the messages between them.
const LOOP = `
  SELECT CASE WHEN whole.answered_at >= sessions.last_active_at THEN NULL ELSE inbox.received_at - sessions.last_active_at END
      AS "afterAnswerMs",
    CASE WHEN loops.number < inbox.number AND (loops.session = whole.session OR loops.number > whole.number) THEN loops.quick END AS quick,
    inbox.sender, inbox.account, held_back.until AS "pausedUntilMs",
    inbox.turn_id IS NOT NULL OR inbox.replayed_at IS NOT NULL AS "isAdmitted"
  FROM inbox
  LEFT JOIN sessions ON sessions.id = coalesce(CAST($2 AS text), inbox.session)
  LEFT JOIN loops AS whole ON whole.session = coalesce(CAST($2 AS text), inbox.session)
  LEFT JOIN loops ON loops.session = coalesce(CAST($3 AS text), inbox.session)
  LEFT JOIN held_back ON held_back.client = coalesce(CAST($3 AS text), inbox.session) AND held_back.cause = 'loop'
  WHERE inbox.number = $1 AND inbox.ended_at IS NULL`
const COUNT = `
  INSERT INTO loops (session, number, quick, answered_at)
  VALUES ($1, $2, $3, coalesce((SELECT last_active_at FROM sessions WHERE id = $4), 0)) ON CONFLICT (session) DO UPDATE SET`
const COUNT_QUICK = `${COUNT} number = $2, quick = $3, answered_at = excluded.answered_at WHERE loops.number < $2`
/** Keeps the number of the last slow message. */
const FOLLOW = `${COUNT} answered_at = excluded.answered_at`
const FORGET_LOOP = 'DELETE FROM loops WHERE session = $1 AND number <= $2'
const LIST = `
  SELECT client, cause, since AS "sinceMs", until AS "untilMs" FROM held_back WHERE until > $1 AND since <= $1
  ORDER BY until DESC, client LIMIT $2`
const RESET = [
  'DELETE FROM held_back WHERE client = $1 RETURNING client',
  'DELETE FROM loops WHERE session = $1 RETURNING session',
  'DELETE FROM spending WHERE client = $1 RETURNING client',
  // An admission without a time still counts as in flight until its turn ends.
  'UPDATE admissions SET at = 0 WHERE client = $1 AND at > 0 RETURNING client',
]

export const dayOf = (atMs: number): number => Math.floor(atMs / DAY_MS)

interface Place {
  readonly place: number
  readonly at: number
}

/** Reads the newest admission of a client. */
export function* lastOf(client: string): Steps<Place> {
  return (yield* first<Place>(LAST, client)) ?? { place: 0, at: Number.NEGATIVE_INFINITY }
}

/** Reads the first limit of a day that is reached. */
export function* overspent(counted: readonly CountedLimits[], atMs: number): Steps<Exceeded | undefined> {
  const day = dayOf(atMs)
  for (const { key, usdPerDay: value } of counted) {
    if (value === 0) continue
    const usd = (yield* first<{ usd: number }>(SPENT, key, day))?.usd ?? 0
    if (usd >= value) return { limit: 'usd_per_day', key, value, freeAtMs: (day + 1) * DAY_MS }
  }
  return undefined
}

/** The writes of each message. */
export type AdmissionWrites = Pick<AdmissionStore, 'take' | 'cancel' | 'hold'>

export const createAdmissions = (db: ColdDatabase, writes: AdmissionWrites): AdmissionStore => ({
  ...writes,
  async spend(keys, usd, atMs) {
    // In one order, so that two processes cannot wait for each other.
    const sorted = [...new Set(keys)].toSorted()
    if (sorted.length > 0) await db.write(...sorted.map((key) => statement(SPEND, key, dayOf(atMs), usd)))
  },
  overspent: (counted, atMs) => db.read(() => overspent(counted, atMs)),
  async hold(held, quietMs) {
    // A client that goes on asking is not worth a write for each request.
    const { client, cause, sinceMs } = held
    return (await db.get(HELD, client, cause, sinceMs, quietMs)) === undefined && writes.hold(held, quietMs)
  },
  wasServed: async (client, atMs) => (await db.read(() => lastOf(client))).at > atMs - DAY_MS,
  async loopState(inbox, of) {
    const row = await db.get<Omit<LoopState, 'quick'> & { quick: number | null }>(LOOP, inbox, of?.session ?? null, of?.series ?? null)
    return row && { ...row, quick: row.quick ?? 0, isAdmitted: Boolean(row.isAdmitted) }
  },
  async countQuick({ session, series }, inbox, quick) {
    if (quick === 0) {
      const isShared = series !== session
      await db.write(isShared ? statement(COUNT_QUICK, session, inbox, 0, session) : statement(FORGET_LOOP, session, inbox))
      return
    }
    const counted = statement(COUNT_QUICK, series, inbox, quick, session)
    await db.write(counted, ...(series === session ? [] : [statement(FOLLOW, session, inbox - 1, 0, session)]))
  },
  async forgetQuick({ session, series }, inbox) {
    const forget = statement(FORGET_LOOP, series, inbox)
    await db.write(forget, ...(series === session ? [] : [statement(FOLLOW, session, inbox - 1, 0, session)]))
  },
  list: (atMs, limit) => db.all<HeldBack>(LIST, atMs, limit),
  reset: (client) =>
    db.transaction(function* () {
      const changed = yield RESET.map((text) => statement(text, client))
      return changed.some((rows) => rows.length > 0)
    }),
})
