import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type FakeBoard, type FakeBoardOptions, type Fault, fakeBoard } from '../testing/fake-board.ts'
import { memoryPort } from '../transports/memory-port.ts'
import { Link, PING_MS, PINGS_MAX, REQUEST_MS } from './link.ts'

const never = new AbortController().signal
const READ = { signal: never, repeatable: true }
const WRITE = { signal: never, repeatable: false }
const links: Link[] = []
afterEach(async () => {
  for (const link of links.splice(0)) await link.close()
})

function connected(options: FakeBoardOptions = {}) {
  const { near, far } = memoryPort()
  const clock = testClock()
  const signals: unknown[] = []
  const onClose = vi.fn()
  const board = fakeBoard(far, options)
  const link = new Link(near, 'board_b0', clock, { onSignal: (...signal) => signals.push(signal), onClose })
  links.push(link)
  const read = (pin: number, options = READ) => link.request('gpio_read', { pin }, options)
  return { link, board, clock, signals, onClose, read, far }
}

const code = (expected: string) => expect.objectContaining({ code: expected })
/** Advances the clock in small steps until `work` settles. */
async function passing<Result>(clock: ReturnType<typeof testClock>, work: Promise<Result>, msMax = 2 * REQUEST_MS) {
  const settled = work.then(
    (value) => ({ value }),
    (error: AppError) => ({ error }),
  )
  let done = false
  void settled.finally(() => (done = true))
  const startMs = clock.monotonicMs()
  while (!done && clock.monotonicMs() - startMs < msMax) await clock.advance(50)
  return { ...(await settled), tookMs: clock.monotonicMs() - startMs } as { value?: Result; error?: AppError; tookMs: number }
}

/** A reply to a ping, from a board that does not number its replies. */
const PONG = '{"ok":true,"data":{"firmware":"fake 1"}}\n'
const receivedOne = async ({ requests }: FakeBoard): Promise<void> => {
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
}

describe.each(['numbered', 'bare'] as const)('a link in the %s dialect', (dialect) => {
  test('returns the reply to its request', async () => {
    const { board, read, link } = connected({ dialect })
    await link.request('gpio_write', { pin: 4, value: 1 }, WRITE)
    const answer = dialect === 'bare' ? expect.objectContaining({ value: 1 }) : '1'
    await expect(read(4)).resolves.toEqual(answer)
    expect(board.requests.map(({ command, args }) => [command, args])).toEqual([
      ['gpio_write', { pin: 4, value: 1 }],
      ['gpio_read', { pin: 4 }],
    ])
  })

  test.each(['noise', 'echo'] satisfies Fault[])('ignores %s around a reply', async (fault) => {
    const { board, read } = connected({ dialect })
    board.pins.set(4, 1)
    board.next(fault)
    await expect(read(4)).resolves.toBeDefined()
    expect(board.requests).toHaveLength(1)
  })

  test.each(['silent', 'half', 'endless'] satisfies Fault[])('repeats a read whose reply is lost: %s', async (fault) => {
    const { board, read, clock } = connected({ dialect })
    board.next(fault, fault)
    const { value, tookMs } = await passing(clock, read(4))
    expect(value).toBeDefined()
    expect(board.requests.length).toBeGreaterThanOrEqual(3)
    expect(tookMs).toBeLessThanOrEqual(REQUEST_MS)
  })

  test('never repeats a write', async () => {
    const { board, link, clock } = connected({ dialect })
    board.next('silent')
    const { error, tookMs } = await passing(clock, link.request('gpio_write', { pin: 4, value: 1 }, WRITE))
    expect(error).toEqual(code('upstream_timeout'))
    expect(error?.message).toContain('it is not known whether the request was carried out')
    expect(tookMs).toBeLessThanOrEqual(REQUEST_MS + 100)
    expect(board.requests).toHaveLength(1)
  })

  test('reports a refusal with its reason', async () => {
    const { board, read } = connected({ dialect })
    board.next('refuse')
    await expect(read(99)).rejects.toThrow('board_b0 refuses: Invalid pin')
  })

  test('fails at once and permanently when unplugged during a frame', async () => {
    const { board, read, onClose, link } = connected({ dialect })
    board.next('unplug')
    await expect(read(4)).rejects.toEqual(code('unavailable'))
    expect(link.isClosed).toBe(true)
    expect(onClose).toHaveBeenCalledOnce()
    await expect(read(4)).rejects.toEqual(code('unavailable'))
  })
})

describe('a link', () => {
  test('discards replies to other requests', async () => {
    const { board, read } = connected()
    board.pins.set(4, 1)
    board.next('stray')
    await expect(read(4)).resolves.toBe('1')
  })

  test('times out when all replies have a wrong number', async () => {
    const { board, read, clock } = connected()
    board.next(...Array<Fault>(20).fill('wrong-id'))
    const { error, tookMs } = await passing(clock, read(4))
    expect(error).toEqual(code('upstream_timeout'))
    expect(tookMs).toBeLessThanOrEqual(REQUEST_MS + 100)
  })

  test('does not match a late reply without a number to the next request', async () => {
    const { board, read, clock } = connected({ dialect: 'bare' })
    await read(4)
    board.next('silent', { answer: { value: 1 } })
    board.pins.set(5, 0)
    const late = passing(clock, read(4))
    // The reply to the first attempt arrives during the hello of the second one.
    await clock.advance(1600)
    board.send('{"ok":true,"data":{"value":0,"late":true}}\n')
    expect((await late).value).toEqual({ value: 1 })
    await expect(read(5)).resolves.toEqual(expect.objectContaining({ value: 0 }))
  })

  test('does not match late replies to pings to a request', async () => {
    const { board, link, clock } = connected({ dialect: 'bare' })
    board.always('silent')
    const write = link.request('gpio_write', { pin: 99, value: 1 }, WRITE)
    for (let ping = 1; ping < 3; ping++) await clock.advance(PING_MS)
    board.send(PONG)
    await receivedOne(board)
    board.send(`${PONG}${PONG}{"ok":false,"error":"Invalid pin"}\n`)
    await expect(write).rejects.toThrow('board_b0 refuses: Invalid pin')
  })

  test.each([
    ['silent', 'did not answer'],
    ['only-echo', 'echoes what is sent'],
    ['other-protocol', 'output is not the line protocol'],
    ['endless', 'did not answer'],
  ] satisfies [Fault, string][])('explains in time why nothing answers: %s', async (fault, words) => {
    const { board, read, clock } = connected()
    board.always(fault)
    const { error, tookMs } = await passing(clock, read(4))
    expect(error).toEqual(code('upstream_timeout'))
    expect(error?.message).toContain(words)
    expect(tookMs).toBeLessThanOrEqual(PINGS_MAX * PING_MS + 200)
  })

  test('limits the wait for a board that answers only a ping', async () => {
    const { board, read, clock } = connected({ dialect: 'bare' })
    board.always('silent')
    const reading = read(4)
    for (let ping = 1; ping < PINGS_MAX; ping++) await clock.advance(PING_MS)
    board.send(PONG)
    await receivedOne(board)
    const { error } = await passing(clock, reading)
    expect(error).toEqual(code('upstream_timeout'))
    expect(clock.monotonicMs()).toBeLessThanOrEqual(REQUEST_MS + 100)
  })

  test('waits for a board that restarts when its port is opened', async () => {
    const { board, read, clock } = connected()
    board.always('silent')
    const reading = passing(clock, read(4))
    await clock.advance(2000)
    board.always('none')
    expect((await reading).value).toBe('0')
  })

  test('passes signals to the listener, between and within replies', async () => {
    const { board, read, signals } = connected()
    board.send('{"event":"button","value":1}\n')
    await read(4)
    board.send('{"event":"temp","value":{"celsius":21}}\n{"event":"bad/name","value":1}\n')
    await read(4)
    expect(signals).toEqual([
      ['button', 1],
      ['temp', { celsius: 21 }],
    ])
  })

  test('ends a call at once on an abort', async () => {
    const { board, link } = connected()
    await link.hello(never)
    board.always('silent')
    const abort = new AbortController()
    const call = link.request('gpio_write', { pin: 4, value: 1 }, { signal: abort.signal, repeatable: false })
    abort.abort()
    await expect(call).rejects.toEqual(code('aborted'))
  })

  test('throws an AppError after close', async () => {
    const { link, read } = connected()
    await link.close()
    await expect(read(1)).rejects.toBeInstanceOf(AppError)
  })
})
