/** A handle on requested GPIO lines: reads and writes their levels, and delivers their edges as events on the event loop. */
import { readSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import { AppError } from '@sluice/sdk'
import type { Native } from '../native.ts'
import type { EdgeWatch, GpioLines, Level, LineRequest } from './gpio.ts'
import * as abi from './line-abi.ts'

/** Events read in one go. The rest are read on the next tick, so that a busy line does not block the event loop. */
const EVENTS_PER_TICK = 16

export interface LineHandle {
  /** The path of the chip. */
  readonly path: string
  /** The descriptor of the lines, which `HeldLines` closes. */
  readonly fd: number
  readonly request: LineRequest
}

export class HeldLines implements GpioLines {
  readonly offsets: readonly number[]
  readonly #native: Native
  readonly #handle: LineHandle
  readonly #watching: { close(): void } | undefined
  #isClosed = false

  constructor(native: Native, handle: LineHandle) {
    const { offsets, watch } = handle.request
    this.offsets = offsets
    this.#native = native
    this.#handle = handle
    this.#watching = watch && native.watch(handle.fd, (isGone) => this.#deliver(watch, isGone))
  }

  read(): Level[] {
    const lines = this.offsets.length
    return abi.parseValues(this.#exchange(abi.GET_VALUES, abi.valuesBuffer(lines)), lines)
  }

  write(levels: readonly Level[]): void {
    if (this.#handle.request.direction !== 'output') throw new AppError('invalid_request', `${this.#name} are not outputs`)
    if (levels.length !== this.offsets.length) throw new AppError('invalid_request', `${this.#name} need one level each`)
    this.#exchange(abi.SET_VALUES, abi.valuesBuffer(levels.length, levels))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#watching?.close()
    this.#native.close(this.#handle.fd)
  }

  get #name(): string {
    return `The lines ${this.offsets.join(', ')} of ${this.#handle.path}`
  }

  #exchange(request: number, values: Buffer): Buffer {
    if (this.#isClosed) throw new AppError('unavailable', `${this.#name} are closed`)
    const result = this.#native.ioctl(this.#handle.fd, request, values)
    if (result < 0) throw new AppError('unavailable', `${this.#name} do not answer: ${getSystemErrorName(result)}`)
    return values
  }

  /** Delivers the pending events. When the chip is gone, delivers all of its last events before `onLost`, since no further call follows. */
  #deliver(watch: EdgeWatch, isGone: boolean): void {
    const events = Buffer.alloc(EVENTS_PER_TICK * abi.EVENT_BYTES)
    // After a close the descriptor's number may belong to another file.
    while (!this.#isClosed) {
      const bytes = readNow(this.#handle.fd, events)
      if (bytes === 'broken' || (bytes === 0 && isGone)) {
        this.close()
        watch.onLost?.()
        return
      }
      for (let at = 0; at < bytes && !this.#isClosed; at += abi.EVENT_BYTES) {
        watch.onEvent(abi.parseEvent(events.subarray(at, at + abi.EVENT_BYTES)))
      }
      if (!isGone) return
    }
  }
}

/** Returns the number of bytes read, 0 when nothing is pending. */
function readNow(fd: number, into: Buffer): number | 'broken' {
  try {
    return readSync(fd, into)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : 'broken'
  }
}
