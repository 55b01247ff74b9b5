/** Whoever follows the events of a life of the daemon, coming and going, is told once of every decision that was taken in it. */
import { countsOf } from '../counts-of.ts'
import type { Violation } from '../history.ts'
import { gateName, type Seen, type SopsHistory, type SopsView } from './history.ts'

/** A decision is told once it is noted that it was taken: by then other events may have been told. */
const NOTING_MS = 1000

interface FollowedLife {
  readonly fromMs: number
  readonly untilMs: number
  readonly told: readonly { readonly name: string; readonly state: string }[]
}

export function checkTold({ seen }: SopsHistory, { approvals }: SopsView): Violation[] {
  return followedLives(seen).flatMap(({ fromMs, untilMs, told }) => {
    const states = new Map(told.map(({ name, state }) => [name, state]))
    const found = [...countsOf(told.map(({ name }) => name))].flatMap(([name, times]) =>
      times > 1 ? [`${name} was told ${times} times`] : [],
    )
    for (const { runId, stepId, state, settledAtMs } of approvals) {
      const name = gateName(runId, stepId)
      const said = states.get(name)
      if (said !== undefined && said !== state) found.push(`${name} is ${state} and was told as ${said}`)
      const wasFollowed = settledAtMs !== null && settledAtMs >= fromMs && settledAtMs < untilMs - NOTING_MS
      if (wasFollowed && said === undefined) found.push(`${name} is ${state}, and nobody was told`)
    }
    return found.map((detail) => ({ rule: 'told', detail }))
  })
}

export function followedLives(seen: readonly Seen[]): FollowedLife[] {
  const lives: FollowedLife[] = []
  let told: { name: string; state: string }[] = []
  for (const event of seen) {
    if (event.type === 'told') told.push({ name: gateName(event.run, event.step), state: event.state })
    if (event.type !== 'followed') continue
    lives.push({ ...event, told })
    told = []
  }
  return lives
}
