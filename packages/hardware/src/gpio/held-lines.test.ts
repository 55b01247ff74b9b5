import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Native } from '../native.ts'
import type { EdgeEvent, LineRequest } from './gpio.ts'
import { HeldLines } from './held-lines.ts'
import { EVENT_BYTES, SET_VALUES } from './line-abi.ts'

const ENODEV = -19

const arrange = (request: Partial<LineRequest>, { fd = -1, answer = 0 } = {}) => {
  const requests: [number, number[]][] = []
  const closed: string[] = []
  let readable: (isGone: boolean) => void = () => {}
  const native: Native = {
    ioctl: (_fd, number, data) => {
      requests.push([number, [...data.subarray(0, 16)]])
      return answer
    },
    close: () => void closed.push('fd'),
    watch: (_fd, onReadable) => {
      readable = onReadable
      return { close: () => void closed.push('watch') }
    },
  }
  const lines = new HeldLines(native, {
    path: '/dev/gpiochip0',
    fd,
    request: { offsets: [4, 5], direction: 'output', consumer: 'x', ...request },
  })
  return { lines, requests, closed, readable: (isGone = false) => readable(isGone) }
}

/** Returns a descriptor of a file with encoded events, which is read like the kernel's descriptor. */
const eventFile = (events: number): number => {
  const folder = mkdtempSync(join(tmpdir(), 'events-'))
  const bytes = Buffer.alloc(events * EVENT_BYTES)
  for (let index = 0; index < events; index++) {
    bytes.writeBigUInt64LE(BigInt(1000 + index), index * EVENT_BYTES)
    bytes.writeUInt32LE(index % 2 === 0 ? 1 : 2, index * EVENT_BYTES + 8)
    bytes.writeUInt32LE(4, index * EVENT_BYTES + 12)
    bytes.writeUInt32LE(index + 1, index * EVENT_BYTES + 16)
  }
  writeFileSync(join(folder, 'events'), bytes)
  const fd = openSync(join(folder, 'events'), 'r')
  onTestFinished(() => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  })
  return fd
}

describe('HeldLines', () => {
  test('writes all levels with one request', () => {
    const { lines, requests } = arrange({})
    lines.write([1, 0])
    expect(requests).toEqual([[SET_VALUES, [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]]])
  })

  test('rejects a write to inputs and a wrong number of levels', () => {
    const { lines, requests } = arrange({ direction: 'input' })
    expect(() => lines.write([1, 0])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    expect(() => arrange({}).lines.write([1])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    expect(requests).toEqual([])
  })

  test('throws `unavailable` after a close or a lost chip, and closes only once', () => {
    expect(() => arrange({}, { answer: ENODEV }).lines.read()).toThrow(/ENODEV/)
    const { lines, closed } = arrange({})
    lines.close()
    lines.close()
    expect(closed).toEqual(['fd'])
    expect(() => lines.read()).toThrow(expect.objectContaining({ code: 'unavailable' }))
  })

  test('delivers events in order, sixteen in one go', () => {
    const events: EdgeEvent[] = []
    const watch = { edge: 'both', onEvent: (event: EdgeEvent) => void events.push(event) } as const
    const { readable } = arrange({ direction: 'input', watch }, { fd: eventFile(20) })
    readable()
    expect(events).toHaveLength(16)
    expect(events[1]).toEqual({ offset: 4, edge: 'falling', atNs: 1001n, sequence: 2 })
    readable()
    expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('delivers no event after a close', () => {
    const events: EdgeEvent[] = []
    const { lines, closed, readable } = arrange(
      {
        direction: 'input',
        watch: {
          edge: 'both',
          onEvent: (event) => {
            events.push(event)
            lines.close()
          },
        },
      },
      { fd: eventFile(3) },
    )
    readable()
    expect(events).toHaveLength(1)
    expect(closed).toEqual(['watch', 'fd'])
  })

  test('reports a lost chip once, after its last events, and closes the lines', () => {
    const reported: string[] = []
    const watch = {
      edge: 'rising',
      onEvent: ({ sequence }: EdgeEvent) => void reported.push(`${sequence}`),
      onLost: () => void reported.push('lost'),
    } as const
    const { closed, readable } = arrange({ direction: 'input', watch }, { fd: eventFile(20) })
    readable(true)
    readable(true)
    expect(reported).toEqual([...Array.from({ length: 20 }, (_, index) => `${index + 1}`), 'lost'])
    expect(closed).toEqual(['watch', 'fd'])
  })

  test('reports a loss when the descriptor can no longer be read', () => {
    let lost = 0
    const { closed, readable } = arrange({ direction: 'input', watch: { edge: 'rising', onEvent: () => {}, onLost: () => void lost++ } })
    readable()
    expect(lost).toBe(1)
    expect(closed).toEqual(['watch', 'fd'])
  })
})
