/** A fake safety process, inside the test's process, that gives prepared answers at once. */
import type { CompanionRequest, StartCompanion } from '@sluice/sdk'
import type { MoveEnd } from '../core/robot-event.ts'
import type { KernelInit, KernelMessage, KernelRequest, View } from '../kernel/messages.ts'

export interface InlineCompanion {
  readonly start: StartCompanion
  readonly inits: readonly KernelInit[]
  readonly sent: readonly KernelRequest[]
  /** Sends a message from the process started last. */
  say(message: KernelMessage): void
  /** Ends the process started last. */
  end(why: string): void
}

export interface InlineAnswers {
  readonly end?: Partial<MoveEnd>
  readonly view?: Partial<View>
  /** Makes the process end with this failure instead of becoming ready. */
  readonly failure?: string
  /** Keeps the process from ever becoming ready. */
  readonly hangs?: boolean
  /** Leaves all requests unanswered. */
  readonly silent?: boolean
}

export const VIEW: View = {
  isEstopPressed: false,
  latched: null,
  fault: null,
  pressed: [],
  isMoving: false,
  ways: [
    { way: 'ahead', distance: 1.5, sight: 'seen' },
    { way: 'left', distance: Number.POSITIVE_INFINITY, sight: 'seen' },
    { way: 'back', distance: 0.4, sight: 'unseen' },
    { way: 'right', distance: 2, sight: 'blind' },
  ],
  sensors: [{ name: 'lidar', ageMs: 3 }],
}

export function inlineCompanion(answers: InlineAnswers = {}): InlineCompanion {
  const inits: KernelInit[] = []
  const sent: KernelRequest[] = []
  let current: CompanionRequest | undefined
  const answer = (message: KernelRequest): KernelMessage => {
    if (message.kind === 'stop') return { kind: 'stopped', id: message.id }
    if (message.kind !== 'move') return { kind: 'seen', id: message.id, view: { ...VIEW, ...answers.view } }
    const end = { id: message.move.id, reason: 'done' as const, why: '', moved: message.move.amount ?? 0.5, tookMs: 1000, reversed: 0 }
    return { kind: 'ended', end: { ...end, ...answers.end } }
  }
  const start: StartCompanion = async (request) => {
    current = request
    inits.push(request.init as KernelInit)
    const { failure } = answers
    let isOver = false
    const end = (why: string) => {
      if (isOver) return
      isOver = true
      request.onEnd(why)
    }
    queueMicrotask(() => {
      if (answers.hangs) return
      request.onMessage(failure === undefined ? { kind: 'ready' } : { kind: 'failed', why: failure })
      if (failure !== undefined) end('it ended with code 1')
    })
    return {
      pid: 1,
      send(message) {
        sent.push(message as KernelRequest)
        if (!answers.silent) queueMicrotask(() => request.onMessage(answer(message as KernelRequest)))
      },
      close: async () => end('it was closed'),
    }
  }
  return { start, inits, sent, say: (message) => current?.onMessage(message), end: (why) => current?.onEnd(why) }
}
