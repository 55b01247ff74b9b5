import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Native } from '../native.ts'
import type { EdgeEvent, LineRequest } from './gpio.ts'
import { holdLines } from './hold-lines.ts'
import { EVENT_BYTES, SET_VALUES } from './line-abi.ts'

const ENODEV = -19

const arrange = (request: Partial<LineRequest>, { fd = -1, answer = 0 } = {}) => {
  const asked: [number, number[]][] = []
  const closed: string[] = []
  let readable: (isGone: boolean) => void = () => {}
  const native: Native = {
    ioctl: (_fd, number, data) => {
      asked.push([number, [...data.subarray(0, 16)]])
      return answer
    },
    close: () => void closed.push('fd'),
    watch: (_fd, onReadable) => {
      readable = onReadable
      return { close: () => void closed.push('watch') }
    },
  }
  const lines = holdLines(native, {
    path: '/dev/gpiochip0',
    fd,
    request: { offsets: [4, 5], direction: 'output', consumer: 'x', ...request },
  })
  return { lines, asked, closed, readable: (isGone = false) => readable(isGone) }
}

/** A file stands in for the kernel's handle: it is read the same way. */
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

test('levels are written all at once', () => {
  const { lines, asked } = arrange({})
  lines.write([1, 0])
  expect(asked).toEqual([[SET_VALUES, [1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]]])
})

test('inputs are not written, nor a wrong number of levels', () => {
  const { lines, asked } = arrange({ direction: 'input' })
  expect(() => lines.write([1, 0])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  expect(() => arrange({}).lines.write([1])).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  expect(asked).toEqual([])
})

test('closed lines and a chip that is gone are unavailable, and closing twice closes once', () => {
  expect(() => arrange({}, { answer: ENODEV }).lines.read()).toThrow(/ENODEV/)
  const { lines, closed } = arrange({})
  lines.close()
  lines.close()
  expect(closed).toEqual(['fd'])
  expect(() => lines.read()).toThrow(expect.objectContaining({ code: 'unavailable' }))
})

test('events come in order, sixteen at a time', () => {
  const events: EdgeEvent[] = []
  const watch = { edge: 'both', onEvent: (event: EdgeEvent) => void events.push(event) } as const
  const { readable } = arrange({ direction: 'input', watch }, { fd: eventFile(20) })
  readable()
  expect(events).toHaveLength(16)
  expect(events[1]).toEqual({ offset: 4, edge: 'falling', atNs: 1001n, sequence: 2 })
  readable()
  expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
})

test('nothing is told after the lines are closed', () => {
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

test('a chip that is gone is told once, after its last events, and its lines are closed', () => {
  const told: string[] = []
  const watch = {
    edge: 'rising',
    onEvent: ({ sequence }: EdgeEvent) => void told.push(`${sequence}`),
    onLost: () => void told.push('lost'),
  } as const
  const { closed, readable } = arrange({ direction: 'input', watch }, { fd: eventFile(20) })
  readable(true)
  readable(true)
  expect(told).toEqual([...Array.from({ length: 20 }, (_, index) => `${index + 1}`), 'lost'])
  expect(closed).toEqual(['watch', 'fd'])
})

test('a handle that cannot be read any more is lost', () => {
  let lost = 0
  const { closed, readable } = arrange({ direction: 'input', watch: { edge: 'rising', onEvent: () => {}, onLost: () => void lost++ } })
  readable()
  expect(lost).toBe(1)
  expect(closed).toEqual(['watch', 'fd'])
})
