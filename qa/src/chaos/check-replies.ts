/** Checks that each reply is sent once, is ambiguous only for a reason, and becomes a dead letter only after the last attempt. */
import {
  countsOf,
  type FaultName,
  type History,
  nameOf,
  type OutboxSeen,
  PROMPT_PART,
  type Report,
  reporter,
  type StoreView,
  type Violation,
} from './history.ts'

/** Sends of one channel that run at once. */
const SENDS_MAX = 64
/** After these faults the daemon cannot know whether the reply was sent. */
const AMBIGUOUS_AFTER: readonly (FaultName | null)[] = ['reset', 'lost']

interface Attempt {
  readonly life: number
  readonly fault: FaultName | null
}

interface Life {
  readonly startedMs: number
  readonly endedMs: number
  readonly isKilled: boolean
}

interface Sends {
  /** By the name of the part. */
  readonly attempts: ReadonlyMap<string, readonly Attempt[]>
  readonly lives: readonly Life[]
}

export function checkReplies(history: History, store: StoreView): Violation[] {
  const { found, report } = reporter()
  const sends = sendsOf(history)
  const delivered = countsOf(history.delivered.flatMap(({ parts }) => parts.map(nameOf)))
  const rows = Map.groupBy(
    store.outbox.flatMap((row) => row.parts.map((part) => ({ part, row }))),
    ({ part }) => nameOf(part),
  )
  const prompts = new Set(history.delivered.flatMap(({ parts }) => parts.filter(({ part }) => part === PROMPT_PART).map(nameOf)))
  for (const [name, times] of delivered) {
    // A prompt of unknown outcome is sent again while its question is open.
    const timesMax = prompts.has(name) ? 1 + uncertainSends(sends, name) : 1
    if (times > timesMax) report('sent once', `${name} was sent ${times} times`)
  }

  const answered = new Set(store.sessions.flat())
  for (const { mark, parts } of history.messages) {
    if (!answered.has(mark)) continue
    for (let part = 1; part <= parts; part++) {
      const name = nameOf({ mark, part })
      checkPart(name, rows.get(name)?.map(({ row }) => row) ?? [], delivered.get(name) ?? 0, report)
    }
  }
  for (const row of store.outbox) checkRow(row, history, sends, report)
  checkInterruptedByOneKill(store, sends.lives, report)
  return found
}

/** Compares one part of a reply in the outbox with the platform. */
function checkPart(name: string, rows: readonly OutboxSeen[], delivered: number, report: Report): void {
  const [row, another] = rows
  if (!row || another) report('queued once', `${name} is in the outbox ${rows.length} times`)
  else if (row.state === 'sent' && delivered === 0) report('sent', `${name} is recorded as sent, but the platform does not have it`)
  else if (row.state === 'dead' && delivered > 0) report('dead', `${name} is a dead letter, but the platform has it`)
  else if (!['sent', 'ambiguous', 'dead'].includes(row.state)) report('sent', `${name} is ${row.state} at the end`)
}

/** The sends before the last one after which the daemon could not know whether the part had arrived. */
const uncertainSends = ({ attempts, lives }: Sends, name: string): number =>
  (attempts.get(name) ?? []).slice(0, -1).filter(({ fault, life }) => AMBIGUOUS_AFTER.includes(fault) || lives[life]?.isKilled === true)
    .length

function checkRow(row: OutboxSeen, { attemptsMax, dropRepeats }: History, { attempts, lives }: Sends, report: Report): void {
  // All parts of one row are sent together: each attempt is seen with the first part.
  const [first] = row.parts
  const tries = (first && attempts.get(nameOf(first))) ?? []
  const name = row.parts.map(nameOf).join(' ')
  if (row.state === 'dead' && !isRightlyGivenUp(row, tries, attemptsMax))
    report('dead', `${name} became a dead letter after only ${row.attempts} attempts`)
  if (row.state !== 'ambiguous') return
  if (dropRepeats.includes(row.channel)) report('ambiguous', `${name} is ambiguous, but ${row.channel} drops repeats`)
  else if (!row.isInterrupted && !AMBIGUOUS_AFTER.includes(tries.at(-1)?.fault ?? null))
    report('ambiguous', `${name} is ambiguous, but no request failed in a way that leaves doubt: ${row.error}`)
  else if (row.isInterrupted && !isInterruptedByKill(row, tries, lives))
    report('ambiguous', `${name} is recorded as interrupted, but no kill came while it was sent`)
}

function sendsOf({ seen }: History): Sends {
  const attempts = new Map<string, Attempt[]>()
  const lives: Life[] = []
  let startedMs = 0
  for (const event of seen) {
    if (event.type === 'started') startedMs = event.wallMs
    if (event.type === 'ended') lives.push({ startedMs, endedMs: event.wallMs, isKilled: event.by === 'SIGKILL' })
    if (event.type !== 'sending') continue
    for (const part of event.parts) {
      const own = attempts.get(nameOf(part)) ?? []
      own.push({ life: lives.length, fault: event.fault })
      attempts.set(nameOf(part), own)
    }
  }
  return { attempts, lives }
}

/** The life that found the reply ambiguous must follow one that was killed; if the last send was seen, it was in that life. */
function isInterruptedByKill({ endedAtMs, attempts }: OutboxSeen, tries: readonly Attempt[], lives: readonly Life[]): boolean {
  // The last attempt may have been interrupted before its request was sent.
  const counted = tries.filter(({ fault }) => fault !== 'limited' && fault !== 'away')
  const last = counted.length < attempts ? undefined : tries.at(-1)
  const foundIn = lives.findIndex(({ startedMs, endedMs }) => endedAtMs !== null && startedMs <= endedAtMs && endedAtMs <= endedMs)
  const before = lives.slice(0, Math.max(foundIn, 0))
  const sentIn = last ? lives[last.life] : undefined
  if (!last) return before.some(({ isKilled }) => isKilled)
  // Between the two, lives may have been killed before they examined the reply.
  return last.life < foundIn && sentIn?.isKilled === true && before.slice(last.life).every(({ isKilled }) => isKilled)
}

function checkInterruptedByOneKill({ outbox }: StoreView, lives: readonly Life[], report: Report): void {
  const interrupted = outbox.filter(({ isInterrupted, state }) => isInterrupted && state === 'ambiguous')
  for (const { startedMs, endedMs } of lives) {
    const here = interrupted.filter(({ endedAtMs }) => endedAtMs !== null && startedMs <= endedAtMs && endedAtMs <= endedMs)
    for (const [channel, count] of countsOf(here.map((row) => row.channel))) {
      if (count > SENDS_MAX)
        report('ambiguous', `one kill interrupted ${count} replies of ${channel}, but at most ${SENDS_MAX} run at once`)
    }
  }
}

/** Attempts that the platform refused do not count, so an outage alone makes no reply a dead letter. */
const isRightlyGivenUp = ({ attempts }: OutboxSeen, tries: readonly Attempt[], attemptsMax: number): boolean =>
  attempts >= attemptsMax && tries.length >= attemptsMax
