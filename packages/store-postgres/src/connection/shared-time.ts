/** The clock that all processes of a database share: its own, unless a test sets the time. */
import { systemClock } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** Returns null where the database's own clock counts. */
export const givenTime = (clock: Clock): number | null => (clock === systemClock ? null : clock.nowMs())

/** The time in milliseconds since 1970; `given` is a parameter of `givenTime`. */
export const sharedTime = (given: string): string => `coalesce(${given}::float8, extract(epoch FROM clock_timestamp())::float8 * 1000)`
