/** Checks that a subscriber that reconnects within one life of the daemon gets each decision of that life once. */
import { countsOf, type Violation } from '../history.ts'
import { gateName, type Seen, type SopsHistory, type SopsView } from './history.ts'

/** The event of a decision is emitted after its dispatch is stored; in between, other events may be emitted. */
const EMIT_DELAY_MS = 1000

interface FollowedLife {
  readonly fromMs: number
  readonly untilMs: number
  readonly decisions: readonly { readonly name: string; readonly state: string }[]
}

export function checkSubscriber({ seen }: SopsHistory, { approvals }: SopsView): Violation[] {
  return followedLives(seen).flatMap(({ fromMs, untilMs, decisions }) => {
    const states = new Map(decisions.map(({ name, state }) => [name, state]))
    const found = [...countsOf(decisions.map(({ name }) => name))].flatMap(([name, times]) =>
      times > 1 ? [`the event of ${name} arrived ${times} times`] : [],
    )
    for (const { runId, stepId, state, acknowledgedAtMs } of approvals) {
      const name = gateName(runId, stepId)
      const emitted = states.get(name)
      if (emitted !== undefined && emitted !== state) found.push(`the event of ${name} says ${emitted}, but the approval is ${state}`)
      const wasFollowed = acknowledgedAtMs !== null && acknowledgedAtMs >= fromMs && acknowledgedAtMs < untilMs - EMIT_DELAY_MS
      if (wasFollowed && emitted === undefined) found.push(`no event arrived for ${name}, which is ${state}`)
    }
    return found.map((detail) => ({ rule: 'event', detail }))
  })
}

export function followedLives(seen: readonly Seen[]): FollowedLife[] {
  const lives: FollowedLife[] = []
  let decisions: { name: string; state: string }[] = []
  for (const event of seen) {
    if (event.type === 'emitted') decisions.push({ name: gateName(event.run, event.step), state: event.state })
    if (event.type !== 'followed') continue
    lives.push({ ...event, decisions })
    decisions = []
  }
  return lives
}
