/** Checks what is written to a Cortex-M's flash as it is: its first two words are the top of its stack and its start. */
import type { Board } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'

const HEAD_BYTES = 8

/** Throws `invalid_request` for what this board cannot start. */
export function checkBinary(image: Uint8Array, { name, memory }: Pick<Board, 'name' | 'memory'>): void {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const [stack, start] = image.length < HEAD_BYTES ? [0, 0] : [view.getUint32(0, true), view.getUint32(4, true)]
  const hasStack = memory.some((ram) => ram.name === 'RAM' && stack > ram.start && stack <= ram.start + ram.length)
  const hasStart = memory.some((flash) => flash.name === 'Flash' && start > flash.start && start < flash.start + image.length)
  if (hasStack && hasStart) return
  throw new AppError(
    'invalid_request',
    `The image is no program for ${name}: it does not begin with a stack in its RAM and a start in its flash`,
  )
}
