/** The rules on one arrival: nothing acknowledged is lost, nothing is there twice, nothing is there by half. */
import { isDeepStrictEqual } from 'node:util'
import type { InboxEntry } from '@sluice/sdk'
import type { Kind } from './told.ts'
import { arrivalOf, isAnswered, providerIdOf, repliesOf } from './workload.ts'

export interface Found {
  /** For each of its messages the rows there are of it. */
  readonly entries: readonly (readonly InboxEntry[])[]
  readonly isTurnDone: boolean
}

export function* problemsOf(at: number, { entries, isTurnDone }: Found, wasTold: (kind: Kind) => boolean): Generator<string> {
  if (entries.some(({ length }) => length > 1)) yield `${at} is there more than once`
  if (entries.some(({ length }) => length === 0)) {
    if (wasTold('kept')) yield `${at} was acknowledged and is missing`
    if (entries.some(({ length }) => length > 0)) yield `${at} is there in part`
    return
  }
  const messages = entries.flat()
  if (!messages.every((message, index) => hasContent(message, at, index))) yield `${at} is there with another content`
  const [message] = messages
  if (message && isAnswered(at)) yield* problemsOfAnswer(at, message, isTurnDone, wasTold)
}

function* problemsOfAnswer(
  at: number,
  { state, attempts, replies }: InboxEntry,
  isTurnDone: boolean,
  wasTold: (kind: Kind) => boolean,
): Generator<string> {
  const isDone = state === 'done'
  if (wasTold('started') && attempts === 0) yield `${at} was started and does not know it`
  if (wasTold('finished') && !isDone) yield `${at} was finished and is not`
  if (isDone !== isTurnDone) yield `${at} and its turn are not in the same state`
  const expected = isDone ? repliesOf(at).map(({ text }) => text) : []
  const texts = replies.map(({ text }) => text)
  if (!isDeepStrictEqual(texts, expected)) yield `${at} has the replies ${JSON.stringify(texts)}`
  const [reply] = replies
  if (wasTold('sending') && !reply?.attempts) yield `${at} began to be sent and does not know it`
  if (wasTold('sent') && !(reply?.state === 'sent' && reply.providerId === providerIdOf(at))) yield `${at} was sent and is not`
}

function hasContent(entry: InboxEntry, at: number, index: number): boolean {
  const { raw, verdict, messages } = arrivalOf(at)
  const { message, session } = messages[index] ?? {}
  return (
    entry.verdict === verdict &&
    entry.session === session &&
    entry.raw !== null &&
    Buffer.compare(entry.raw, raw) === 0 &&
    isDeepStrictEqual(entry.message, message)
  )
}
