/** The rules for one arrival: an acknowledged one is not lost, and none is stored twice or in part. */
import { isDeepStrictEqual } from 'node:util'
import type { InboxEntry } from '@sluice/sdk'
import type { MarkKind } from './marks.ts'
import { arrivalOf, isAnswered, providerIdOf, repliesOf } from './workload.ts'

/** The stored state of one arrival. */
export interface StoredArrival {
  /** The inbox rows of each message of the arrival. */
  readonly entries: readonly (readonly InboxEntry[])[]
  readonly isTurnDone: boolean
}

/** Yields the broken rules of one arrival; `isMarked` tells which facts the child acknowledged. */
export function* problemsOf(at: number, { entries, isTurnDone }: StoredArrival, isMarked: (kind: MarkKind) => boolean): Generator<string> {
  if (entries.some(({ length }) => length > 1)) yield `${at} is stored more than once`
  if (entries.some(({ length }) => length === 0)) {
    if (isMarked('kept')) yield `${at} was acknowledged and is missing`
    if (entries.some(({ length }) => length > 0)) yield `${at} is stored in part`
    return
  }
  const messages = entries.flat()
  if (!messages.every((message, index) => hasContent(message, at, index))) yield `${at} is stored with different content`
  const [message] = messages
  if (message && isAnswered(at)) yield* problemsOfAnswer(at, message, isTurnDone, isMarked)
}

function* problemsOfAnswer(
  at: number,
  { state, attempts, replies }: InboxEntry,
  isTurnDone: boolean,
  isMarked: (kind: MarkKind) => boolean,
): Generator<string> {
  const isDone = state === 'done'
  if (isMarked('started') && attempts === 0) yield `${at} was started, but no attempt is stored`
  if (isMarked('finished') && !isDone) yield `${at} was finished, but is not done`
  if (isDone !== isTurnDone) yield `${at} and its turn are not in the same state`
  const expected = isDone ? repliesOf(at).map(({ text }) => text) : []
  const texts = replies.map(({ text }) => text)
  if (!isDeepStrictEqual(texts, expected)) yield `${at} has the replies ${JSON.stringify(texts)}`
  const [reply] = replies
  if (isMarked('sending') && !reply?.attempts) yield `sending the reply to ${at} began, but no attempt is stored`
  if (isMarked('sent') && !(reply?.state === 'sent' && reply.providerId === providerIdOf(at)))
    yield `the reply to ${at} was sent, but is not marked as sent`
}

function hasContent(entry: InboxEntry, at: number, index: number): boolean {
  const { raw, verdict, messages } = arrivalOf(at)
  const { message, session } = messages[index] ?? {}
  return (
    entry.verdict === verdict &&
    entry.session === session &&
    (raw === null ? isDeepStrictEqual(entry.message, message) : entry.raw !== null && Buffer.compare(entry.raw, raw) === 0)
  )
}
