import { expect, test } from 'vitest'
import type { ChatFrame } from './chat-frames.ts'
import { ALL_KEPT_CHARS_MAX, KEPT_CHARS_MAX, TURNS_MAX, TurnStreams } from './turn-streams.ts'

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

/** The length of each frame that has a content, and the type of any other. */
const short = (frames: readonly ChatFrame[]) => frames.map((frame) => ('content' in frame ? frame.content.length : frame.type))
const charsIn = (frames: readonly ChatFrame[]) => frames.reduce((sum, frame) => sum + ('content' in frame ? frame.content.length : 0), 0)

test('a long turn loses its beginning, and a caller that follows later gets a gap', async () => {
  const { listen, runs, follow } = arrange()
  runs('t1')
  const early = follow()
  const piece = 'x'.repeat(KEPT_CHARS_MAX / 64)
  for (let count = 0; count < 65; count++) listen({ type: 'text', delta: piece })
  listen({ type: 'text', delta: 'the end' })
  const { frames } = follow()
  expect(frames[0]).toEqual({ type: 'gap' })
  expect(frames.at(-1)).toMatchObject({ content: expect.stringMatching(/the end$/) })
  expect(charsIn(frames)).toBeLessThanOrEqual(KEPT_CHARS_MAX)
  expect(charsIn(frames)).toBeGreaterThan(KEPT_CHARS_MAX * 0.9)
  // A caller that followed from the beginning has missed nothing.
  expect(charsIn(early.frames)).toBe(65 * piece.length + 'the end'.length)
  expect(short(early.frames)).not.toContain('gap')
})

test('one frame beyond the bound of kept characters is a gap', () => {
  const { listen, runs, follow } = arrange()
  runs('t1')
  listen({ type: 'text', delta: 'x'.repeat(KEPT_CHARS_MAX + 1) })
  listen({ type: 'text', delta: 'y' })
  expect(short(follow().frames)).toEqual(['gap', 1])
})

test('all turns together keep a bounded number of characters, and the longest lose their beginnings', async () => {
  const { streams } = arrange()
  const signal = AbortSignal.abort()
  const ends = Array.from({ length: 40 }, () => Promise.withResolvers<void>())
  const begin = (count: number) => {
    const agent = { ended: () => ends[count]?.promise ?? Promise.reject(new Error('no such turn')) }
    const { listen, runs } = streams.open(agent)
    runs(`t${count}`)
    return listen
  }
  const follow = async (count: number) => {
    const frames: ChatFrame[] = []
    await streams.follow(`t${count}`, { ended: () => Promise.resolve() }, (frame) => frames.push(frame), signal)
    return frames
  }
  const all = async () => (await Promise.all(ends.map((_, count) => follow(count)))).flat()
  begin(0)({ type: 'text', delta: 'a short one' })
  for (let count = 1; count < 40; count++) {
    const listen = begin(count)
    for (let part = 0; part < 32; part++) listen({ type: 'text', delta: 'x'.repeat(KEPT_CHARS_MAX / 32) })
  }
  expect(charsIn(await all())).toBeLessThanOrEqual(ALL_KEPT_CHARS_MAX)
  expect(charsIn(await all())).toBeGreaterThan(ALL_KEPT_CHARS_MAX * 0.9)
  expect(short(await follow(0))).toEqual(['a short one'.length])
  expect(short(await follow(1))).toContain('gap')
  // What ended turns had is free again.
  for (const { resolve } of ends.slice(0, 39)) resolve()
  await new Promise(setImmediate)
  const listen = begin(38)
  for (let part = 0; part < 32; part++) listen({ type: 'text', delta: 'x'.repeat(KEPT_CHARS_MAX / 32) })
  expect(short(await follow(38))).not.toContain('gap')
})

test('the number of turns is bounded', async () => {
  const { streams, agent, runs } = arrange()
  runs('t1')
  for (let count = 1; count < TURNS_MAX + 5; count++) streams.open(agent).runs(`other-${count}`)
  const signal = AbortSignal.abort()
  expect(await streams.follow(`other-${TURNS_MAX + 1}`, agent, () => {}, signal)).toBe(false)
})
