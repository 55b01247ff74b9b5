/** The lanes of commands, which overtake the messages of their sessions. */
import { changeLane } from '@sluice/sdk'

const LANE = 'command:'

/** The lane of the commands of a session. */
export const commandLane = (session: string): string => `${LANE}${session}`

/** True if the command in this lane runs beside the turn of its session. A release before this one stored `/new` in the lane of its session. */
export const overtakes = (lane: string): boolean => lane.startsWith(LANE)

/** Returns the session of the commands in this lane. */
export const commandSession = (lane: string): string => (overtakes(lane) ? lane.slice(LANE.length) : lane)

/** Returns the session of a lane of messages, of commands or of changes. */
export const sessionOfLane = (lane: string): string => {
  const changes = changeLane('')
  return commandSession(lane.startsWith(changes) ? lane.slice(changes.length) : lane)
}
