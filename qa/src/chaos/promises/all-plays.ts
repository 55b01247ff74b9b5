/** The plays by name; each proves the promises of one capability. */
import { startArrivals } from './arrivals/arrivals-play.ts'
import { startHeld } from './held/held-play.ts'
import type { Play, PlayOptions } from './play.ts'
import { startRooms } from './rooms/rooms-play.ts'

export const PLAYS: Readonly<Record<string, (options: PlayOptions) => Promise<Play>>> = {
  held: startHeld,
  arrivals: startArrivals,
  rooms: startRooms,
}

export const PLAY_NAMES = Object.keys(PLAYS)
