/** A handle on requested lines: their levels, and their edges as events on the loop. */
import { readSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { AppError } from '@sluice/sdk'
import type { Native } from '../native.ts'
import type { EdgeWatch, GpioLines, LineRequest } from './gpio.ts'
import * as abi from './line-abi.ts'

/** Read at once; more come at the next turn of the loop. */
const EVENTS_AT_ONCE = 16

interface Held {
  readonly path: string
  /** Of the lines, from here on this handle's to close. */
  readonly fd: number
  readonly request: LineRequest
}

export function holdLines(native: Native, { path, fd, request: { offsets, direction, watch } }: Held): GpioLines {
  let isClosed = false
  const close = () => {
    if (isClosed) return
    isClosed = true
    watching?.close()
    native.close(fd)
  }

  const exchange = (request: number, values: Buffer): Buffer => {
    if (isClosed) throw new AppError('unavailable', `The lines ${offsets.join(', ')} of ${path} are closed`)
    const answer = native.ioctl(fd, request, values)
    if (answer < 0)
      throw new AppError('unavailable', `The lines ${offsets.join(', ')} of ${path} do not answer: ${getSystemErrorName(answer)}`)
    return values
  }

  const watching = watch && native.watch(fd, (isGone) => readEvents({ fd, watch, isGone, isClosed: () => isClosed, close }))

  return {
    offsets,
    read: () => abi.parseValues(exchange(abi.GET_VALUES, abi.valuesBuffer(offsets.length)), offsets.length),
    write(levels) {
      if (direction !== 'output') throw new AppError('invalid_request', `The lines ${offsets.join(', ')} of ${path} are no outputs`)
      if (levels.length !== offsets.length) throw new AppError('invalid_request', 'Levels are one for each line')
      exchange(abi.SET_VALUES, abi.valuesBuffer(offsets.length, levels))
    },
    close,
  }
}

interface Reading {
  readonly fd: number
  readonly watch: EdgeWatch
  readonly isGone: boolean
  readonly isClosed: () => boolean
  readonly close: () => void
}

/** Of a chip that is gone the last events are told before its end is: nobody calls again. */
function readEvents({ fd, watch, isGone, isClosed, close }: Reading): void {
  const events = Buffer.alloc(EVENTS_AT_ONCE * abi.EVENT_BYTES)
  // a closed number may be another file by now
  while (!isClosed()) {
    const bytes = readNow(fd, events)
    if (bytes === 'broken' || (bytes === 0 && isGone)) {
      close()
      watch.onLost?.()
      return
    }
    for (let at = 0; at < bytes && !isClosed(); at += abi.EVENT_BYTES) {
      watch.onEvent(abi.parseEvent(events.subarray(at, at + abi.EVENT_BYTES)))
    }
    if (!isGone) return
  }
}

function readNow(fd: number, into: Buffer): number | 'broken' {
  try {
    return readSync(fd, into)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : 'broken'
  }
}
