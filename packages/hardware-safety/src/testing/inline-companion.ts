/** A safety process that is none: it answers at once and as it is told to, in this process. */
import type { CompanionRequest, StartCompanion } from '@sluice/sdk'
import type { MoveEnd } from '../core/robot-event.ts'
import type { FromKernel, KernelInit, ToKernel, View } from '../kernel/messages.ts'

export interface InlineCompanion {
  readonly start: StartCompanion
  readonly inits: readonly KernelInit[]
  readonly sent: readonly ToKernel[]
  /** Of the last one. */
  say(message: FromKernel): void
  /** Ends the last one. */
  end(why: string): void
}

export interface InlineAnswers {
  readonly end?: Partial<MoveEnd>
  readonly view?: Partial<View>
  /** It ends instead of being ready, and says this. */
  readonly failure?: string
  /** It never comes to be ready. */
  readonly hangs?: boolean
  /** What it is asked goes unanswered. */
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
  const sent: ToKernel[] = []
  let current: CompanionRequest | undefined
  const answer = (message: ToKernel): FromKernel => {
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
        sent.push(message as ToKernel)
        if (!answers.silent) queueMicrotask(() => request.onMessage(answer(message as ToKernel)))
      },
      close: async () => end('it was closed'),
    }
  }
  return { start, inits, sent, say: (message) => current?.onMessage(message), end: (why) => current?.onEnd(why) }
}
