/** Reads the mails that are new in the mailbox. The position moves only past mails that are durable or ignored. */
import type { Host } from '@sluice/sdk'
import { searchDay } from './fetch-mail.ts'
import type { Intake, MailToTake, Taking } from './intake.ts'
import type { OpenFolder } from './mailbox.ts'
import type { FetchedMail } from './parse.ts'
import type { Cursor, Progress } from './progress.ts'

export interface Reading extends Taking {
  readonly host: Pick<Host, 'log' | 'clock'>
  readonly intake: Intake
  readonly progress: Progress
}

const SAVE_EVERY = 20
/** The most mails that are read at once; the oldest are skipped. */
const MAILS_MAX = 10_000
const HOUR_MS = 3_600_000
/** The times of a server are whole seconds of its own clock. */
const CLOCKS_MS = 60_000
const DAY_MS = 24 * HOUR_MS
/** After the server has changed its UIDs, older mails are skipped. */
const AGAIN_MS_MAX = 30 * DAY_MS

/** Prepares reading a folder that was opened: begins at its end the first time, and finds the position after its UIDs changed. */
export async function startReading(opened: OpenFolder, reading: Reading): Promise<void> {
  const { progress, host } = reading
  const { uidValidity, uidNext } = opened.folder
  const cursor = await progress.load()
  const nowMs = host.clock.nowMs()
  if (!cursor) return progress.save({ uidValidity, uid: uidNext - 1, atMs: nowMs, setUpAtMs: nowMs })
  if (cursor.uidValidity !== uidValidity) await readAgain(opened, reading, cursor)
}

/** Delivers the mails after the position. Rejects at the first one that fails. */
export async function readNew({ imap, folder: { uidValidity } }: OpenFolder, reading: Reading): Promise<void> {
  const { progress, host, onGap, signal } = reading
  const cursor = progress.cursor
  if (!cursor) return
  const atMs = host.clock.nowMs()
  imap.forgetChanges()
  // The range of a search is never empty: if no UID is that high, the server looks at the last message.
  const found = (await imap.search(`UID ${cursor.uid + 1}:*`)).filter((uid) => uid > cursor.uid)
  if (found.length > MAILS_MAX) onGap({ sinceMs: cursor.atMs, why: `more than ${MAILS_MAX} mails arrived; the oldest are skipped` })
  const { setUpAtMs } = cursor
  let saved = cursor.uid
  let last = cursor.uid
  const save = async (readAtMs: number): Promise<void> => {
    await progress.save({ uidValidity, uid: last, atMs: readAtMs, setUpAtMs })
    saved = last
  }
  try {
    for (const uid of found.slice(-MAILS_MAX)) {
      if (!(await takeOne(imap, { uidValidity, uid }, reading))) return
      last = uid
      if (last - saved >= SAVE_EVERY) await save(cursor.atMs)
    }
  } catch (error) {
    if (last > saved) await save(cursor.atMs).catch(() => undefined)
    throw error
  }
  if (!signal.aborted) await save(atMs)
}

/** Reads the mails since the last reading once more, because their UIDs have changed. Skips the mails that were read before. */
async function readAgain({ imap, folder }: OpenFolder, reading: Reading, lost: Cursor): Promise<void> {
  const { host, progress, onGap } = reading
  const { uidValidity, uidNext } = folder
  const nowMs = host.clock.nowMs()
  const sinceMs = Math.max(lost.setUpAtMs - CLOCKS_MS, lost.atMs - HOUR_MS, nowMs - AGAIN_MS_MAX)
  if (lost.atMs < nowMs - AGAIN_MS_MAX)
    onGap({ sinceMs: lost.atMs, why: 'the UIDs of the server changed after more than 30 days; older mails are skipped' })
  const found = (await imap.search(`SINCE ${searchDay(sinceMs - DAY_MS)}`)).filter((uid) => uid < uidNext)
  host.log.warn('the UIDs of the server changed (UIDVALIDITY); reading the latest mails once more', {
    channel: 'email',
    mails: found.length,
  })
  if (found.length > MAILS_MAX) onGap({ sinceMs, why: `more than ${MAILS_MAX} mails; the oldest are skipped` })
  const skips: MailToTake['skips'] = (mail, { id }) => {
    if (progress.isKnown(id)) return 'it was read before'
    if (mail.receivedAtMs < sinceMs) return 'it is older than the last reading'
    // The times of all mails are new if they were copied. A mail that was written a day before the last reading had been read then.
    return writtenAtMs(mail) < lost.atMs - DAY_MS ? 'it was written long before the last reading' : undefined
  }
  for (const uid of found.slice(-MAILS_MAX)) {
    if (!(await takeOne(imap, { uidValidity, uid, skips }, reading))) return
  }
  await progress.save({ uidValidity, uid: uidNext - 1, atMs: nowMs, setUpAtMs: lost.setUpAtMs })
}

/** Resolves to false when reading has to stop before the mail was durable. */
async function takeOne(imap: OpenFolder['imap'], mail: MailToTake, reading: Reading): Promise<boolean> {
  const { intake, progress, signal } = reading
  if (signal.aborted) return false
  const taken = await intake.take(imap, mail, reading)
  if (taken === 'stopped') return false
  if (taken) progress.remember(taken.id)
  return true
}

const writtenAtMs = ({ headers, receivedAtMs }: FetchedMail): number => {
  const written = Date.parse(headers('date')[0] ?? '')
  return Number.isNaN(written) ? receivedAtMs : written
}
