/** How far the way is free, seen from the robot, by what its sensors saw last and how far it has gone since. */
import type { Beam } from './robot-event.ts'
import { COMMAND_MS_MAX, type RobotState, type Sight } from './robot-state.ts'

/** A direction is seen if a beam ends up no farther than this beside it. */
const SEEN_WITHIN = Math.PI / 18

export interface Clearance {
  /** Metres to what is in the way; `Infinity`: nothing is. */
  readonly distance: number
  /** `unseen`: a sensor looks there, but saw nothing of it; `blind`: none looks there. */
  readonly sight: 'seen' | 'unseen' | 'blind'
}

/** `turn`: radians a second at which it turns meanwhile; what that may bring into the way under one command is in it already. */
export function clearance({ limits, sights, odometer, turned }: RobotState, heading: number, turn = 0): Clearance {
  let distance = Number.POSITIVE_INFINITY
  let isCovered = false
  let isSeen = false
  for (const { name, bearing, halfAngle } of limits.sensors) {
    const covers = angleBetween(bearing, heading) <= halfAngle
    isCovered ||= covers
    const sight = sights[name]
    if (!sight) continue
    const turnedSince = turned - sight.turned
    const aside = turnedSince + (Math.abs(turn) * COMMAND_MS_MAX) / 1000
    for (const { bearing, spread, distance: away } of sight.beams) {
      const beam = { bearing, spread: spread + aside, distance: away }
      distance = Math.min(distance, ahead(beam, heading, limits.width / 2) - goneSince(sight, odometer))
      isSeen ||= covers && angleBetween(bearing, heading) + turnedSince <= spread + SEEN_WITHIN
    }
  }
  return { distance: Math.max(0, distance), sight: isSeen ? 'seen' : isCovered ? 'unseen' : 'blind' }
}

/** Every direction counts as the one it has gone in: that errs towards what is near. */
const goneSince = (sight: Sight, odometer: number): number => odometer - sight.odometer

/** How far it may go until what the beam met is beside it, wherever in the beam that is; `Infinity` for what it passes by. */
function ahead({ bearing, spread, distance }: Beam, heading: number, halfWidth: number): number {
  if (distance === Number.POSITIVE_INFINITY) return distance
  const angle = angleBetween(bearing, heading)
  const least = Math.max(0, angle - spread)
  if (least >= Math.PI / 2 || distance * Math.sin(least) > halfWidth) return Number.POSITIVE_INFINITY
  const inTheWay = distance <= halfWidth ? Math.PI / 2 : Math.asin(halfWidth / distance)
  return distance * Math.cos(Math.min(angle + spread, inTheWay))
}

/** 0 to π. */
export function angleBetween(one: number, other: number): number {
  const turns = Math.abs(one - other) % (2 * Math.PI)
  return Math.min(turns, 2 * Math.PI - turns)
}
