/** Tells whether a promise ends in time, for rules against hanging. */
import { setTimeout as sleep } from 'node:timers/promises'

/** A wait consists of pieces, each of which is a tick of the event loop: a busy machine makes the wait longer. */
const PIECE_MS = 10

/** Waits for the promise, but at most `ms` milliseconds in which the event loop runs. Never rejects. */
export const within = async (ms: number, ended: Promise<unknown>): Promise<'ended' | 'still running'> => {
  let isOver = false
  const onEnd = () => {
    isOver = true
  }
  const end = ended.then(onEnd, onEnd)
  for (let leftMs = ms; !isOver && leftMs > 0; leftMs -= PIECE_MS) await Promise.race([end, sleep(PIECE_MS)])
  return isOver ? 'ended' : 'still running'
}
