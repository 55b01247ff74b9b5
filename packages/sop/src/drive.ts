/** One run being driven in this process: what its step is doing, and how it is let go of. */
import { SOP_ENDED, type SopRun } from '@sluice/sdk'

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000

export interface Drive {
  /** Aborts when the run was cancelled, and when the engine stops. */
  cut: AbortController
  /** The turn that works on its step. */
  turnId: string | null
  /** True while a tool runs for it: a stop lets that end. */
  isCalling: boolean
  /** The run may have changed since it was read. */
  again: boolean
  ended: Promise<void>
}

export const newDrive = (): Drive => ({
  cut: new AbortController(),
  turnId: null,
  isCalling: false,
  again: false,
  ended: Promise.resolve(),
})

export const hasEnded = ({ status }: Pick<SopRun, 'status'>): boolean => SOP_ENDED.includes(status)

/** Milliseconds before something is tried again that failed `failures` times in a row before this one. */
export const pauseMs = (failures: number): number => Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures)

/** Resolves when `work` does, or as soon as the signal aborts. */
export async function unlessCut(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const cut = () => resolve()
  if (signal.aborted) return
  signal.addEventListener('abort', cut, { once: true })
  try {
    await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', cut)
  }
}
