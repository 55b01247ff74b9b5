/** Slow and late subscribers, and their effect on others. */

import { createEventBus } from '@sluice/runtime'
import type { EventFollower, EventLog } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { BUFFERED_BYTES_MAX, createFanOut, type Sink, STALLED_MS_MAX } from './fan-out.ts'
import type { Framing } from './frames.ts'
import type { Subscription } from './subscription.ts'

const FROM_NOW: Subscription = { reader: null, lastEventId: null, types: null }

const jsonFraming: Framing = {
  event: ({ json }) => Buffer.from(`${json}\n`),
  gap: (missed) => Buffer.from(`${JSON.stringify({ type: 'gap', missed })}\n`),
}

/** A subscriber whose number of unread bytes the test sets. */
class FakeSink implements Sink {
  readonly buffers: Buffer[] = []
  buffered = 0
  destroyed = 0

  bufferedBytes(): number {
    return this.buffered
  }
  write(frame: Buffer): void {
    this.buffers.push(frame)
  }
  destroy(): void {
    this.destroyed += 1
  }
  seen(): unknown[] {
    const lines = Buffer.concat(this.buffers).toString().trimEnd().split('\n')
    const frames = lines.filter((line) => line !== '').map((line) => JSON.parse(line))
    return frames.map(({ type, n, missed }) => (type === 'gap' ? `gap ${missed}` : n))
  }
}

/** `writeMs` is the time that each write takes. */
function setUp(keptMax = 8, writeMs = 0) {
  const time = testClock()
  let busyMs = 0
  const clock = { ...time, monotonicMs: () => time.monotonicMs() + busyMs }
  class BusySink extends FakeSink {
    override write(frame: Buffer): void {
      super.write(frame)
      busyMs += writeMs
    }
  }
  const bus = createEventBus({ clock, run: 'r', keptMax })
  const dropped = { count: 0 }
  const onDropped = (events: number): void => {
    dropped.count += events
  }
  const fanOut = createFanOut({ bus, clock, framing: jsonFraming, onDropped })
  let n = 0
  const emit = (count: number, type: `x_${string}` = 'x_tick') => {
    for (let i = 0; i < count; i++) bus.emit({ type, n: ++n })
  }
  return { clock, bus, fanOut, dropped, emit, sink: () => new BusySink() }
}

test('every subscriber gets every event in order, as the same bytes', () => {
  const { fanOut, emit } = setUp()
  const [a, b] = [new FakeSink(), new FakeSink()]
  fanOut.add(a, FROM_NOW)
  const member = fanOut.add(b, FROM_NOW)
  emit(2)
  fanOut.remove(member)
  emit(1)
  expect(a.seen()).toEqual([1, 2, 3])
  expect(b.seen()).toEqual([1, 2])
  expect(a.buffers[0]).toBe(b.buffers[0])
})

test('a filter passes only the types that it names', () => {
  const { fanOut, emit } = setUp()
  const sink = new FakeSink()
  fanOut.add(sink, { reader: null, lastEventId: null, types: new Set(['x_b']) })
  emit(1, 'x_a')
  emit(1, 'x_b')
  expect(sink.seen()).toEqual([2])
})

test('an event with an outline is whole for its owner and an outline for operators', () => {
  const { fanOut, bus } = setUp()
  const readers = {
    owner: { role: 'client', owner: 'd1' },
    operator: { role: 'operator', owner: 'd2' },
    client: { role: 'client', owner: 'd3' },
  } as const
  const given = (reader: Subscription['reader'], lastEventId: string | null) => {
    const texts: string[] = []
    const sink = new FakeSink()
    sink.write = (frame) => void texts.push(frame.toString())
    fanOut.add(sink, { reader, lastEventId, types: null })
    return texts
  }
  const live = Object.entries(readers).map(([name, reader]) => [name, given(reader, null)] as const)
  bus.emit({ type: 'x_ask', say: 'whole' }, 'd1', { type: 'x_ask', say: 'outline' })
  const resumed = Object.entries(readers).map(([name, reader]) => [name, given(reader, 'r-0')] as const)
  for (const shown of [live, resumed])
    expect(shown.map(([name, texts]) => [name, ...texts.map((text) => JSON.parse(text).say)])).toEqual([
      ['owner', 'whole'],
      ['operator', 'outline'],
      ['client'],
    ])
})

test('resuming replays the kept events, after a gap with the number of others', () => {
  const { fanOut, emit } = setUp(4)
  emit(10)
  const [near, far, lost] = [new FakeSink(), new FakeSink(), new FakeSink()]
  fanOut.add(near, { reader: null, lastEventId: 'r-8', types: null })
  fanOut.add(far, { reader: null, lastEventId: 'r-3', types: null })
  fanOut.add(lost, { reader: null, lastEventId: 'other-3', types: null })
  emit(1)
  expect(near.seen()).toEqual([9, 10, 11])
  expect(far.seen()).toEqual(['gap 3', 7, 8, 9, 10, 11])
  expect(lost.seen()).toEqual(['gap null', 7, 8, 9, 10, 11])
})

test('a subscriber that another node has told more gets only what follows', async () => {
  const clock = testClock()
  let follower: EventFollower | undefined
  const shared: EventLog = {
    append: () => {},
    async follow(given) {
      follower = given
      given.onStart({ seq: 100, base: 100 })
    },
    catchUp: async () => {},
  }
  const bus = createEventBus({ clock, run: 'r', shared })
  await bus.start()
  const fanOut = createFanOut({ bus, clock, framing: jsonFraming, onDropped: () => {} })
  const arrive = (...numbers: readonly number[]): void =>
    follower?.onEvents(
      numbers.map((n) => ({ seq: n, text: JSON.stringify({ event: { type: 'x_tick', n }, timestamp: '' }), isOwn: false })),
    )
  arrive(101)
  expect(follower?.isWatched()).toBe(false)
  const [ahead, equal] = [new FakeSink(), new FakeSink()]
  fanOut.add(ahead, { reader: null, lastEventId: 'r-103', types: null })
  const member = fanOut.add(equal, { reader: null, lastEventId: 'r-101', types: null })
  arrive(102, 103, 104)
  arrive(105)
  fanOut.flush()
  expect(ahead.seen()).toEqual([104, 105])
  expect(equal.seen()).toEqual([102, 103, 104, 105])
  fanOut.remove(member)
  expect(follower?.isWatched()).toBe(true)
})

test('a replay waits for room and continues without a loss', async () => {
  const { clock, fanOut, emit, dropped } = setUp()
  emit(5)
  const sink = new FakeSink()
  sink.buffered = BUFFERED_BYTES_MAX + 1
  fanOut.add(sink, { reader: null, lastEventId: 'r-1', types: null })
  emit(1)
  expect(sink.seen()).toEqual([2])
  await clock.advance(1000)
  expect(sink.seen()).toEqual([2])
  sink.buffered = 0
  emit(1)
  await clock.advance(1000)
  emit(1)
  expect(sink.seen()).toEqual([2, 3, 4, 5, 6, 7, 8])
  expect(dropped.count).toBe(0)
  await clock.advance(1000)
  expect(clock.sleeping).toBe(0)
})

test('a replay reports events that were dropped while it waited', async () => {
  const { clock, fanOut, emit } = setUp(4)
  emit(3)
  const [late, dead] = [new FakeSink(), new FakeSink()]
  for (const sink of [late, dead]) {
    sink.buffered = BUFFERED_BYTES_MAX + 1
    fanOut.add(sink, { reader: null, lastEventId: 'r-1', types: new Set(['x_tick']) })
  }
  emit(5)
  await clock.advance(STALLED_MS_MAX - 1000)
  late.buffered = 0
  await clock.advance(1000)
  expect(late.seen()).toEqual([2, 'gap 2', 5, 6, 7, 8])
  expect([late.destroyed, dead.destroyed]).toEqual([0, 1])
})

test('a slow subscriber misses events over the bound, and then gets a gap', () => {
  const { fanOut, emit, dropped } = setUp()
  const [slow, quick] = [new FakeSink(), new FakeSink()]
  fanOut.add(slow, FROM_NOW)
  fanOut.add(quick, FROM_NOW)
  slow.buffered = BUFFERED_BYTES_MAX
  emit(1)
  slow.buffered = BUFFERED_BYTES_MAX + 1
  emit(3)
  slow.buffered = BUFFERED_BYTES_MAX / 2
  emit(1)
  slow.buffered = 0
  emit(1)
  expect(slow.seen()).toEqual([1, 'gap 4', 6])
  expect(quick.seen()).toEqual([1, 2, 3, 4, 5, 6])
  expect(dropped.count).toBe(4)
})

test('a subscriber that catches up gets the gap without another event', async () => {
  const { clock, fanOut, emit } = setUp()
  const sink = new FakeSink()
  fanOut.add(sink, FROM_NOW)
  sink.buffered = BUFFERED_BYTES_MAX + 1
  emit(2)
  await clock.advance(2000)
  expect(sink.seen()).toEqual([])
  sink.buffered = 0
  await clock.advance(1000)
  expect(sink.seen()).toEqual(['gap 2'])
  expect(clock.sleeping).toBe(0)
})

test('a subscriber that reads nothing for a minute is disconnected', async () => {
  const { clock, fanOut, emit } = setUp()
  const [dead, alive] = [new FakeSink(), new FakeSink()]
  fanOut.add(dead, FROM_NOW)
  fanOut.add(alive, FROM_NOW)
  dead.buffered = BUFFERED_BYTES_MAX + 1
  emit(1)
  await clock.advance(STALLED_MS_MAX - 1)
  expect(dead.destroyed).toBe(0)
  await clock.advance(1)
  expect(dead.destroyed).toBe(1)
  dead.buffered = 0
  emit(1)
  await clock.advance(5000)
  expect(dead.seen()).toEqual([])
  expect(alive.seen()).toEqual([1, 2])
  expect(clock.sleeping).toBe(0)
})

test('a subscriber gets a full minute each time that it lags', async () => {
  const { clock, fanOut, emit } = setUp()
  const sink = new FakeSink()
  fanOut.add(sink, FROM_NOW)
  for (let round = 0; round < 3; round++) {
    sink.buffered = BUFFERED_BYTES_MAX + 1
    emit(1)
    await clock.advance(STALLED_MS_MAX - 2000)
    sink.buffered = 0
    await clock.advance(1000)
  }
  expect(sink.destroyed).toBe(0)
  expect(sink.seen()).toEqual(['gap 1', 'gap 1', 'gap 1'])
})

test('writeAll skips lagging subscribers', () => {
  const { fanOut, emit } = setUp()
  const [slow, quick] = [new FakeSink(), new FakeSink()]
  fanOut.add(slow, FROM_NOW)
  fanOut.add(quick, FROM_NOW)
  slow.buffered = BUFFERED_BYTES_MAX + 1
  emit(1)
  fanOut.writeAll(Buffer.from('{"n":"hello"}'))
  expect(slow.seen()).toEqual([])
  expect(quick.seen()).toEqual([1, 'hello'])
})

test('after a slow flush, events leave together once twice its time has passed', async () => {
  const { clock, fanOut, emit, sink } = setUp(8, 1)
  const [a, b] = [sink(), sink()]
  for (const one of [a, b]) fanOut.add(one, FROM_NOW)
  emit(1)
  expect([a.buffers.length, b.buffers.length]).toEqual([1, 1])
  emit(3)
  expect(a.buffers).toHaveLength(1)
  await clock.advance(3)
  expect(a.buffers).toHaveLength(1)
  await clock.advance(1)
  expect(a.buffers.map(String)).toEqual([expect.stringContaining('"n":1'), expect.stringMatching(/"n":2.*\n.*"n":3.*\n.*"n":4/)])
  expect(b.buffers[1]).toBe(a.buffers[1])
})

test('a subscriber that joins while events wait gets them once, if it resumes, and else not', () => {
  const { bus, fanOut, emit, sink } = setUp(8, 1)
  const [early, late, resumed] = [sink(), sink(), sink()]
  fanOut.add(early, FROM_NOW)
  emit(2)
  fanOut.add(late, FROM_NOW)
  emit(1)
  fanOut.add(resumed, { ...FROM_NOW, lastEventId: `${bus.run}-1` })
  fanOut.flush()
  expect([early, late, resumed].map((one) => one.seen())).toEqual([[1, 2, 3], [3], [2, 3]])
})

test('a subscriber whose replay continues while events wait gets each once', async () => {
  const { bus, clock, fanOut, emit, sink } = setUp(8, 1)
  const [other, slow] = [sink(), sink()]
  fanOut.add(other, FROM_NOW)
  emit(3)
  slow.buffered = BUFFERED_BYTES_MAX + 1
  fanOut.add(slow, { ...FROM_NOW, lastEventId: `${bus.run}-1` })
  slow.buffered = 0
  await clock.advance(999)
  emit(2)
  await clock.advance(100)
  expect(slow.seen()).toEqual([2, 3, 4, 5])
  expect(other.seen()).toEqual([1, 2, 3, 4, 5])
})

test('at most 256 events wait', () => {
  const { fanOut, emit, sink } = setUp(1024, 1)
  const one = sink()
  fanOut.add(one, FROM_NOW)
  emit(256)
  expect(one.buffers).toHaveLength(1)
  emit(1)
  expect(one.buffers).toHaveLength(2)
})
