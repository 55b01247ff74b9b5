/** The program whose disk fails: it stores, answers and decides in groups, retries what is refused, and marks what is acknowledged. */
import { openSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { asked, decision } from '@sluice/testkit/store-rules/approval-samples'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { type ChildOptions, REFUSALS_MAX } from './child-options.ts'
import { type MarkKind, markOf } from './marks.ts'
import { quietHost, runOnConnections } from './store-setup.ts'
import { MARKS_FILE } from './trace.ts'
import {
  AT_MS,
  arrivalOf,
  copiesOf,
  isAnswered,
  isFired,
  isSent,
  messageIdsOf,
  providerIdOf,
  repliesOf,
  runIdOf,
  turnIdOf,
} from './workload.ts'

const GROUP = 6
const LISTED_MAX = 1_000

const { file, arrivals, pragmas, acknowledgesEarly, faultEnds, freed }: ChildOptions = JSON.parse(process.argv[2] ?? '')
runOnConnections(pragmas)
const marksFd = openSync(join(dirname(file), MARKS_FILE), 'a')
const refusals = { count: 0, areOver: false }

// The second store continues with the file that the first one closed, and the process ends without closing it.
const half = Math.ceil(arrivals / 2)
const first = await open()
await live(first, 0, half)
await first.close()
await live(await open(), half, arrivals)
process.exit()

function mark(kind: MarkKind, subject: number | string): void {
  writeSync(marksFd, markOf(kind, subject))
}

function open(): Promise<Store> {
  return insist('to open', async () => openStore({ file, ...quietHost }))
}

async function live(store: Store, from: number, to: number): Promise<void> {
  let kept: { at: number; number: number }[] = []
  for (let start = from; start < to || kept.length > 0; start += GROUP) {
    const group = Array.from({ length: Math.max(0, Math.min(GROUP, to - start)) }, (_, index) => start + index)
    // Earlier messages are answered while the next ones arrive, so that one commit contains both.
    const [next] = await Promise.all([Promise.all(group.map((at) => keep(store, at))), ...kept.map((entry) => answer(store, entry))])
    kept = next.filter(({ at }) => isAnswered(at))
  }
}

async function keep(store: Store, at: number): Promise<{ at: number; number: number }> {
  const copies = Array.from({ length: copiesOf(at) }, async () => {
    if (acknowledgesEarly) mark('kept', at)
    const result = await insist(
      at,
      () => store.inbox.keep(arrivalOf(at)),
      () => expectAbsent(store, at),
    )
    mark('kept', at)
    return result === 'replayed' ? [] : result.filter((number) => number !== null)
  })
  const numbers = (await Promise.all(copies)).flat()
  if (numbers.length !== messageIdsOf(at).length) mark('wrong', `${at} was kept ${numbers.length} times`)
  return { at, number: numbers[0] ?? 0 }
}

async function answer(store: Store, { at, number }: { readonly at: number; readonly number: number }): Promise<void> {
  // One attempt is enough even after refusals, because a refused start is not counted.
  const started = await insist(`to start ${at}`, () => store.inbox.start(number, turnIdOf(at), 1))
  mark('started', at)
  if (!started || 'spent' in started || started.message.text !== arrivalOf(at).messages[0]?.message.text)
    mark('wrong', `${at} was not started, or with another text`)
  const end = turnEnd(turnIdOf(at), {
    sessionId: arrivalOf(at).messages[0]?.session ?? null,
    endedAtMs: AT_MS,
    delivery: { inbox: number, replies: repliesOf(at) },
  })
  const [reply = 0] = await insist(`to finish ${at}`, () => store.turns.finish(end))
  mark('finished', at)
  if (isFired(at)) await fire(store, at)
  if (!isSent(at)) return
  await insist(`to begin sending ${at}`, () => store.outbox.start(reply))
  mark('sending', at)
  await insist(`to send ${at}`, () => store.outbox.sent(reply, { providerId: providerIdOf(at), atMs: AT_MS }))
  mark('sent', at)
}

async function fire(store: Store, at: number): Promise<void> {
  const id = runIdOf(at)
  const key = { runId: id, stepId: 'step-1' }
  await insist(`to fire ${at}`, () => store.sops.start([startOf(sopRun(id))], { atMs: AT_MS, key: id }))
  mark('fired', at)
  await insist(`to ask about ${at}`, () => store.approvals.open(asked(id), []))
  const decided = await insist(`to decide ${at}`, () => store.approvals.decide(key, decision('approved')))
  if (!decided?.won) mark('wrong', `${at} was decided before`)
  mark('decided', at)
}

/** Repeats `write` until it succeeds. Only `unavailable` counts as a refusal; any other error is thrown. */
async function insist<T>(subject: number | string, write: () => Promise<T>, onRefusal?: () => Promise<void>): Promise<T> {
  for (;;) {
    const wereOver = refusals.areOver
    try {
      return await write()
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
      mark('refused', subject)
      if (wereOver) mark('wrong', `${subject} was refused after the fault had ended`)
      countRefusal()
      await onRefusal?.()
    }
  }
}

function countRefusal(): void {
  refusals.count++
  if (refusals.count < REFUSALS_MAX || refusals.areOver) return
  if (faultEnds !== 'freed') process.exit()
  writeFileSync(freed, '')
  refusals.areOver = true
}

async function expectAbsent(store: Store, at: number): Promise<void> {
  if (copiesOf(at) > 1) return
  const ids = new Set(messageIdsOf(at))
  const listed = await store.inbox.list({ limit: LISTED_MAX })
  if (listed.some(({ messageId }) => ids.has(messageId))) mark('wrong', `${at} was refused and is listed`)
}
