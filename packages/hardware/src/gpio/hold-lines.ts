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

  const watching = watch && native.watch(fd, () => readEvents(fd, watch, () => isClosed, close))

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

/** Never waits: it is called when there is something to read. */
function readEvents(fd: number, { onEvent, onLost }: EdgeWatch, isClosed: () => boolean, close: () => void): void {
  const events = Buffer.alloc(EVENTS_AT_ONCE * abi.EVENT_BYTES)
  let bytes: number
  try {
    bytes = readSync(fd, events)
  } catch {
    // only a chip that is gone has nothing to say here
    close()
    onLost?.()
    return
  }
  for (let at = 0; at < bytes && !isClosed(); at += abi.EVENT_BYTES) onEvent(abi.parseEvent(events.subarray(at, at + abi.EVENT_BYTES)))
}
