/** Describes the end of a movement, and the view of the sensors, for the model. */
import type { MoveEnd, Movement } from './core/robot-event.ts'
import type { View } from './kernel/messages.ts'
import { degrees } from './robot-config.ts'

const SIMULATED = 'SIMULATED: no real robot moves. '

/** Returns a sentence such as `moved 0.42 m of 1.00 m in 2.1 s: stopped, an obstacle is at 0.31 m`. */
export function describeEnd(
  { reason, why, moved, tookMs, reversed }: MoveEnd,
  { velocity, amount }: Movement,
  isSimulated: boolean,
): string {
  const turnsOnly = velocity.x === 0 && velocity.y === 0
  const measured = (value: number) => (turnsOnly ? `${Math.round(value / degrees)} degrees` : `${value.toFixed(2)} m`)
  const of = amount === null ? '' : ` of ${measured(amount)}`
  const done = `${turnsOnly ? 'turned' : 'moved'} ${measured(moved)}${of} in ${(tookMs / 1000).toFixed(1)} s`
  const back = reversed > 0 ? `, and backed off ${reversed.toFixed(2)} m` : ''
  const text = reason === 'refused' ? `not moved: ${why}` : reason === 'done' ? done : `${done}: stopped, ${why}${back}`
  return `${isSimulated ? SIMULATED : ''}${text}`
}

/** Returns one line per direction and part of the robot. */
export function describeView(view: View, isSimulated: boolean): string {
  const { isEstopPressed, latched, fault, pressed, isMoving, ways, sensors } = view
  const estop = isEstopPressed ? 'pressed' : latched === null ? 'not pressed' : `not pressed; stopped until a person resets it (${latched})`
  return [
    ...(isSimulated ? [SIMULATED.trim()] : []),
    `moving: ${isMoving ? 'yes' : 'no'}`,
    ...ways.map(({ way, distance, sight }) => `${way}: ${distanceText(distance, sight)}`),
    `emergency stop: ${estop}`,
    `touching: ${pressed.length === 0 ? 'nothing' : pressed.join(', ')}`,
    ...(fault === null ? [] : [`fault: ${fault}`]),
    ...sensors.map(({ name, ageMs }) => `${name}: ${ageMs === null ? 'no reading yet' : `read ${Math.round(ageMs)} ms ago`}`),
  ].join('\n')
}

function distanceText(distance: number, sight: View['ways'][number]['sight']): string {
  const free = distance === Number.POSITIVE_INFINITY ? 'nothing in range' : `${distance.toFixed(2)} m to the next obstacle`
  if (sight === 'seen') return free
  return sight === 'blind' ? 'no sensor covers this direction' : 'the sensors made nothing out'
}
