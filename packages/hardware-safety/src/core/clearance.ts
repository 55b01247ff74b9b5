/** Computes the free distance in a direction, from the last readings and the distance driven since each of them. */
import type { Beam } from './robot-event.ts'
import { COMMAND_MS_MAX, type Reading, type RobotState } from './robot-state.ts'

/** A direction counts as seen when a beam's edge is at most this many radians away from it. */
const SEEN_WITHIN = Math.PI / 18

export interface Clearance {
  /** Metres to the next obstacle; `Infinity` without an obstacle. */
  readonly distance: number
  /** `unseen` when a sensor covers the direction but made nothing out; `blind` when no sensor covers it. */
  readonly sight: 'seen' | 'unseen' | 'blind'
}

/**
 * Returns the clearance in the direction `heading`. `turn` is the rotation of the movement in radians per second; obstacles
 * that it may bring into the way during one command to the motors are counted.
 */
export function clearance({ limits, readings, odometer, turned }: RobotState, heading: number, turn = 0): Clearance {
  let distance = Number.POSITIVE_INFINITY
  let isCovered = false
  let isSeen = false
  for (const { name, bearing, halfAngle } of limits.sensors) {
    const covers = angleBetween(bearing, heading) <= halfAngle
    isCovered ||= covers
    const reading = readings[name]
    if (!reading) continue
    const turnedSince = turned - reading.turned
    const aside = turnedSince + (Math.abs(turn) * COMMAND_MS_MAX) / 1000
    for (const { bearing, spread, distance: away } of reading.beams) {
      const beam = { bearing, spread: spread + aside, distance: away }
      distance = Math.min(distance, ahead(beam, heading, limits.width / 2) - goneSince(reading, odometer))
      isSeen ||= covers && angleBetween(bearing, heading) + turnedSince <= spread + SEEN_WITHIN
    }
  }
  return { distance: Math.max(0, distance), sight: isSeen ? 'seen' : isCovered ? 'unseen' : 'blind' }
}

/** Assumes that the robot went towards the obstacle in question, whatever its direction was: an error makes it seem nearer. */
const goneSince = (reading: Reading, odometer: number): number => odometer - reading.odometer

/**
 * Returns how far the robot can go before it reaches the obstacle that the beam met, at the worst place within the beam;
 * `Infinity` when it passes the obstacle.
 */
function ahead({ bearing, spread, distance }: Beam, heading: number, halfWidth: number): number {
  if (distance === Number.POSITIVE_INFINITY) return distance
  const angle = angleBetween(bearing, heading)
  const least = Math.max(0, angle - spread)
  if (least >= Math.PI / 2 || distance * Math.sin(least) > halfWidth) return Number.POSITIVE_INFINITY
  const inTheWay = distance <= halfWidth ? Math.PI / 2 : Math.asin(halfWidth / distance)
  return distance * Math.cos(Math.min(angle + spread, inTheWay))
}

/** Returns the angle between two directions, from 0 to π. */
export function angleBetween(one: number, other: number): number {
  const turns = Math.abs(one - other) % (2 * Math.PI)
  return Math.min(turns, 2 * Math.PI - turns)
}
