import { expect, test } from 'vitest'
import { jsonLines } from './json-lines.ts'

test('ends the body when the caller goes away, also for a reader in this process', async () => {
  const caller = new AbortController()
  const response = jsonLines<string>(caller.signal, async (send, signal) => {
    send('first')
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  })
  const reader = response.body?.getReader()
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('"first"\n')
  const rest = reader?.read()
  caller.abort(new Error('the caller went away'))
  await expect(rest).rejects.toThrow('the caller went away')
})

/** An answer whose work sends these lines and ends. */
const ended = (lines: readonly string[], onUnread?: () => () => void) =>
  jsonLines<string>(
    new AbortController().signal,
    async (send) => {
      for (const line of lines) send(line)
    },
    onUnread,
  )

test('tells when lines are unread after the end of the work, and when they are read or dropped', async () => {
  const counts = { unread: 0 }
  const count = () => {
    counts.unread++
    return () => {
      counts.unread--
    }
  }
  const read = ended(['a', 'b'], count)
  const dropped = ended(['a'], count)
  const empty = ended([], count)
  await new Promise((resolve) => setImmediate(resolve))
  expect(counts.unread).toBe(2)
  expect(await read.text()).toBe('"a"\n"b"\n')
  expect(counts.unread).toBe(1)
  await dropped.body?.cancel()
  expect(counts.unread).toBe(0)
  expect(await empty.text()).toBe('')
})

test.each([
  ['lines', Array.from({ length: 4097 }, () => 'x')],
  ['bytes', Array.from({ length: 17 }, () => 'x'.repeat(1024 * 1024))],
])('disconnects a caller that leaves too many %s unread', async (_, lines) => {
  const signals: AbortSignal[] = []
  const answer = jsonLines<string>(new AbortController().signal, async (send, signal) => {
    signals.push(signal)
    for (const line of lines) send(line)
  })
  await expect(answer.text()).rejects.toThrow('the caller reads too slowly')
  expect(signals[0]?.aborted).toBe(true)
})
