/**
 * Discord's ids ("snowflakes"): unsigned 64-bit integers in decimal that grow with time. They exceed the safe integers of
 * JavaScript.
 */

const EPOCH_MS = 1_420_070_400_000n
/** The bits above these hold the time of creation. */
const TIME_SHIFT = 22n

export const isSnowflake = (value: unknown): value is string => typeof value === 'string' && /^\d{1,20}$/.test(value)

/** Returns a negative number if `a` is older than `b`, a positive one if it is newer, and 0 if they are equal. */
export const compareSnowflakes = (a: string, b: string): number => Number(BigInt(a) > BigInt(b)) - Number(BigInt(a) < BigInt(b))

/** Returns the time of creation in milliseconds since 1970. */
export const snowflakeMs = (id: string): number => Number((BigInt(id) >> TIME_SHIFT) + EPOCH_MS)

/** Returns the smallest id that can be created at `atMs`, in milliseconds since 1970. */
export const snowflakeAt = (atMs: number): string => String((BigInt(Math.max(0, Math.floor(atMs))) - EPOCH_MS) << TIME_SHIFT)

/** Returns the id directly after `id`. */
export const snowflakeAfter = (id: string): string => String(BigInt(id) + 1n)

/** Returns the id directly before `id`. */
export const snowflakeBefore = (id: string): string => String(BigInt(id) - 1n)
