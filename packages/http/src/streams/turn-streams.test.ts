import { expect, test } from 'vitest'
import type { ChatFrame } from './chat-frames.ts'
import { KEPT_CHARS_MAX, TURNS_MAX, TurnStreams } from './turn-streams.ts'

function arrange() {
  const ended = Promise.withResolvers<void>()
  const agent = { ended: () => ended.promise }
  const streams = new TurnStreams()
  const { listen, runs } = streams.open(agent)
  const follow = (signal = new AbortController().signal) => {
    const frames: ChatFrame[] = []
    const isKnown = streams.follow('t1', agent, (frame) => frames.push(frame), signal)
    return { frames, isKnown }
  }
  return { streams, agent, ended, listen, runs, follow }
}

test('a caller that comes later gets the frames so far, pieces of one text as one, and then each further one', async () => {
  const { ended, listen, runs, follow } = arrange()
  listen({ type: 'text', delta: 'one ' })
  runs('t1')
  const first = follow()
  listen({ type: 'text', delta: 'two' })
  listen({ type: 'tool_call', id: 'c', name: 'look', input: {} })
  const second = follow()
  listen({ type: 'text', delta: 'three' })
  ended.resolve()
  expect(await first.isKnown).toBe(true)
  expect(first.frames.map((frame) => ('content' in frame ? frame.content : frame.type))).toEqual(['one ', 'two', 'tool_call', 'three'])
  expect(second.frames.map((frame) => ('content' in frame ? frame.content : frame.type))).toEqual(['one two', 'tool_call', 'three'])
})

test('a turn that has ended, or is unknown, has no frames', async () => {
  const { ended, runs, follow } = arrange()
  expect(await follow().isKnown).toBe(false)
  runs('t1')
  ended.resolve()
  await ended.promise
  await new Promise(setImmediate)
  expect(await follow().isKnown).toBe(false)
})

test('a caller that leaves gets no more frames', async () => {
  const { listen, runs, follow } = arrange()
  runs('t1')
  const left = new AbortController()
  const { frames, isKnown } = follow(left.signal)
  left.abort()
  await isKnown
  listen({ type: 'text', delta: 'late' })
  expect(frames).toEqual([])
})

test('the frames of a turn and the number of turns are bounded', async () => {
  const { streams, agent, listen, runs, follow } = arrange()
  runs('t1')
  listen({ type: 'text', delta: 'x'.repeat(KEPT_CHARS_MAX) })
  listen({ type: 'text', delta: 'y' })
  expect(follow().frames).toEqual([])
  for (let count = 1; count < TURNS_MAX + 5; count++) streams.open(agent).runs(`other-${count}`)
  const signal = AbortSignal.abort()
  expect(await streams.follow(`other-${TURNS_MAX + 1}`, agent, () => {}, signal)).toBe(false)
})
