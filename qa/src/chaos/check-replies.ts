/** Each reply goes out once; what nobody can tell is called ambiguous, for a reason; nothing is given up without one. */
import { countsOf } from './counts-of.ts'
import { type ChannelName, type FaultName, type History, nameOf, type OutboxSeen, type StoreView, type Violation } from './history.ts'

/** Sends of one channel that run at once. */
const SENDS_MAX = 64
/** It drops repeats, so that nothing is ever in doubt. */
const REPEATABLE: ChannelName = 'textrelay'
const IN_DOUBT: readonly (FaultName | null)[] = ['reset', 'lost']

interface Attempt {
  readonly life: number
  readonly fault: FaultName | null
}

interface Life {
  readonly startedMs: number
  readonly endedMs: number
  readonly isKilled: boolean
}

export function checkReplies(history: History, store: StoreView): Violation[] {
  const found: Violation[] = []
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
  const { attempts, lives } = sendsOf(history)
  const delivered = countsOf(history.delivered.flatMap(({ parts }) => parts.map(nameOf)))
  const rows = Map.groupBy(
    store.outbox.flatMap((row) => row.parts.map((part) => ({ part, row }))),
    ({ part }) => nameOf(part),
  )
  for (const [name, times] of delivered) if (times > 1) tell('sent once', `${name} was sent ${times} times`)

  const answered = new Set(store.sessions.flat())
  for (const { mark, parts } of history.messages) {
    if (!answered.has(mark)) continue
    for (let part = 1; part <= parts; part++) {
      const name = nameOf({ mark, part })
      const [own, another] = rows.get(name) ?? []
      const times = delivered.get(name) ?? 0
      if (!own || another) tell('queued once', `${name} is ${rows.get(name)?.length ?? 0} times in the outbox`)
      else if (own.row.state === 'sent' && times === 0) tell('sent', `${name} is noted as sent, and the provider lacks it`)
      else if (own.row.state === 'dead' && times > 0) tell('dead', `${name} is given up, and the provider has it`)
      else if (!['sent', 'ambiguous', 'dead'].includes(own.row.state)) tell('sent', `${name} is ${own.row.state}`)
    }
  }

  for (const row of store.outbox) {
    // What one row holds goes out at once: each attempt is seen with its first part.
    const [first] = row.parts
    const tries = (first && attempts.get(nameOf(first))) ?? []
    const name = row.parts.map(nameOf).join(' ')
    if (row.state === 'dead' && !isGivenUpRightly(row, tries, history.attemptsMax))
      tell('dead', `${name} was given up after ${row.attempts} attempts`)
    if (row.state !== 'ambiguous') continue
    if (row.channel === REPEATABLE) tell('ambiguous', `${name} is ambiguous where repeats are dropped`)
    else if (!row.isCut && !IN_DOUBT.includes(tries.at(-1)?.fault ?? null))
      tell('ambiguous', `${name} is ambiguous, and nothing went wrong`)
    else if (row.isCut && !isCutByKill(row, tries, lives)) tell('ambiguous', `${name} is said to be cut, and no kill can have done it`)
  }
  return [...found, ...tooManyCut(store, lives)]
}

/** Where each part was sent to, and the lives of the daemon. */
function sendsOf({ seen }: History): { readonly attempts: ReadonlyMap<string, readonly Attempt[]>; readonly lives: readonly Life[] } {
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

/** The life that found it in doubt began after one that was killed, in which it was sent last if that can be seen. */
function isCutByKill({ endedAtMs, attempts }: OutboxSeen, tries: readonly Attempt[], lives: readonly Life[]): boolean {
  // The last attempt may have been cut before its request got anywhere.
  const counted = tries.filter(({ fault }) => fault !== 'limited' && fault !== 'away')
  const last = counted.length < attempts ? undefined : tries.at(-1)
  const foundIn = lives.findIndex(({ startedMs, endedMs }) => endedAtMs !== null && startedMs <= endedAtMs && endedAtMs <= endedMs)
  const before = lives.slice(0, Math.max(foundIn, 0))
  const sentIn = last ? lives[last.life] : undefined
  if (!last) return before.some(({ isKilled }) => isKilled)
  // A life that was cut before it could look may lie between the two.
  return last.life < foundIn && sentIn?.isKilled === true && before.slice(last.life).every(({ isKilled }) => isKilled)
}

function tooManyCut({ outbox }: StoreView, lives: readonly Life[]): Violation[] {
  const cut = outbox.filter(({ isCut, state }) => isCut && state === 'ambiguous')
  return lives.flatMap(({ startedMs, endedMs }) => {
    const here = cut.filter(({ endedAtMs }) => endedAtMs !== null && startedMs <= endedAtMs && endedAtMs <= endedMs)
    return [...countsOf(here.map(({ channel }) => channel))]
      .filter(([, count]) => count > SENDS_MAX)
      .map(([channel, count]) => ({ rule: 'ambiguous', detail: `${count} replies of ${channel} were cut by one kill` }))
  })
}

/** Every attempt that counts was interrupted: an outage of the platform, however long, gives nothing up here. */
function isGivenUpRightly({ attempts }: OutboxSeen, tries: readonly Attempt[], attemptsMax: number): boolean {
  return attempts >= attemptsMax && tries.length >= attemptsMax
}
