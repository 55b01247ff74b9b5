import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { afterEach, describe, expect, test } from 'vitest'
import type { Port } from '../devices.ts'
import { type FakeBoard, fakeBoard } from '../testing/fake-board.ts'
import type { BoardLine } from './board-line.ts'
import { memoryPort } from './memory-port.ts'
import { IDLE_MS, ProtocolLine } from './protocol-line.ts'

const never = new AbortController().signal
const lines: BoardLine[] = []
afterEach(async () => {
  for (const line of lines.splice(0)) await line.close()
})

function boardLine() {
  const clock = testClock()
  const ports: Port[] = []
  const boards: FakeBoard[] = []
  const signals: unknown[] = []
  const unwatched: number[] = []
  const state = { refuses: false, isOpen: 0 }
  const open = async () => {
    if (state.refuses) throw new AppError('unavailable', 'in use by another program')
    const { near, far } = memoryPort()
    state.isOpen++
    near.onClose(() => state.isOpen--)
    ports.push(near)
    boards.push(fakeBoard(far))
    return near
  }
  const line = new ProtocolLine('board_b0', clock, open, {
    onSignal: (...signal) => void signals.push(signal),
    onUnwatched: (pin) => void unwatched.push(pin),
  })
  lines.push(line)
  return { line, clock, ports, boards, signals, unwatched, state }
}

describe('ProtocolLine', () => {
  test('opens the port with the first call and closes it when idle', async () => {
    const { line, clock, state, ports } = boardLine()
    expect(state.isOpen).toBe(0)
    await line.read(4, never)
    await clock.advance(IDLE_MS - 1000)
    await line.read(4, never)
    await clock.advance(IDLE_MS - 1000)
    expect(state.isOpen).toBe(1)
    await clock.advance(2000)
    expect(state.isOpen).toBe(0)
    await line.read(4, never)
    expect(ports).toHaveLength(2)
  })

  test('stays open while signals are wanted, and reopens a lost port', async () => {
    const { line, clock, state, ports, boards, signals } = boardLine()
    line.listen(new Set(['button']))
    await clock.advance(3 * IDLE_MS)
    expect(state.isOpen).toBe(1)
    boards[0]?.send('{"event":"button","value":1}\n')
    await clock.advance(1)
    expect(signals).toEqual([['button', 1]])
    state.refuses = true
    await ports[0]?.close()
    await clock.advance(1000)
    state.refuses = false
    await clock.advance(10_000)
    expect(state.isOpen).toBe(1)
    line.listen(new Set())
    await clock.advance(2 * IDLE_MS)
    expect(state.isOpen).toBe(0)
  })

  describe('with wanted pin signals', () => {
    const requestsOf = (board: FakeBoard | undefined) => board?.requests.map(({ command, args }) => `${command} ${args.pin}`)

    test('makes the board watch the pins after each open, while they are wanted', async () => {
      const { line, clock, ports, boards, signals } = boardLine()
      line.listen(new Set(['pin_4', 'button', 'pin_x', 'pin_12']))
      await expect.poll(() => requestsOf(boards[0])).toEqual(['watch 4', 'watch 12'])
      boards[0]?.send('{"event":"pin_4","value":1}\n')
      await expect.poll(() => signals).toEqual([['pin_4', 1]])
      line.listen(new Set(['pin_4', 'pin_5']))
      await expect.poll(() => requestsOf(boards[0])?.slice(2)).toEqual(['unwatch 12', 'watch 5'])
      await clock.advance(10_000)
      await ports[0]?.close()
      await line.withPort(never, async () => undefined)
      await expect.poll(() => requestsOf(boards.at(-1))).toEqual(['watch 4', 'watch 5'])
      line.listen(new Set())
      await expect.poll(() => requestsOf(boards.at(-1))?.slice(2)).toEqual(['unwatch 4', 'unwatch 5'])
    })

    test('reports a refusal once, and asks a silent board again', async () => {
      const { line, clock, boards, unwatched } = boardLine()
      await line.read(4, never)
      boards[0]?.next('refuse')
      line.listen(new Set(['pin_4']))
      await expect.poll(() => unwatched).toEqual([4])
      await clock.advance(300_000)
      expect(requestsOf(boards[0])).toEqual(['gpio_read 4', 'watch 4'])
      boards[0]?.always('silent')
      line.listen(new Set(['pin_4', 'pin_5']))
      const refused = async () => {
        await clock.advance(5000)
        return unwatched
      }
      await expect.poll(refused).toEqual([4, 5, 5])
      boards[0]?.always('none')
      await expect(line.read(4, never)).resolves.toBe(0)
    })
  })

  test('does not reopen a port in a tight loop when it is lost at once', async () => {
    const { line, clock, ports } = boardLine()
    line.listen(new Set(['button']))
    for (let second = 0; second < 30; second++) {
      await clock.advance(1000)
      await ports.at(-1)?.close()
    }
    expect(ports.length).toBeLessThan(8)
    expect(ports.length).toBeGreaterThan(2)
  })

  test('tries a board that cannot be opened less and less often', async () => {
    const { line, clock, state } = boardLine()
    state.refuses = true
    let attempts = 0
    const refuses = Object.getOwnPropertyDescriptor(state, 'refuses')
    Object.defineProperty(state, 'refuses', {
      get: () => {
        attempts++
        return refuses?.value
      },
    })
    line.listen(new Set(['button']))
    await clock.advance(600_000)
    expect(attempts).toBeLessThan(20)
    expect(attempts).toBeGreaterThan(5)
  })

  test('asks for the capabilities once per connection', async () => {
    const { line, boards, ports } = boardLine()
    await line.capabilities(never)
    boards[0]?.always('silent')
    await expect(line.capabilities(never)).resolves.toEqual(expect.objectContaining({ led: 13 }))
    await ports[0]?.close()
    await line.capabilities(never)
    expect(ports).toHaveLength(2)
  })

  test('never makes a call that was aborted while it waited', async () => {
    const { line, boards } = boardLine()
    const abort = new AbortController()
    const first = line.read(4, never)
    const second = line.write(4, 1, abort.signal)
    abort.abort()
    await expect(second).rejects.toEqual(expect.objectContaining({ code: 'aborted' }))
    await first
    await line.read(5, never)
    expect(boards[0]?.requests.map(({ command }) => command)).toEqual(['gpio_read', 'gpio_read'])
  })

  test('opens nothing after close, which may be called twice', async () => {
    const { line, state } = boardLine()
    await line.read(4, never)
    await line.close()
    await line.close()
    expect(state.isOpen).toBe(0)
    await expect(line.read(4, never)).rejects.toEqual(expect.objectContaining({ code: 'unavailable' }))
  })
})
