/** Ids of the platform: decimal numbers of up to 64 bits that grow with time, beyond what a JavaScript number can hold. */

const EPOCH_MS = 1_420_070_400_000n
/** The moment stands above these bits. */
const TIME_SHIFT = 22n

export const isSnowflake = (value: unknown): value is string => typeof value === 'string' && /^\d{1,20}$/.test(value)

/** Negative if `a` is the older one. */
export const compareSnowflakes = (a: string, b: string): number => Number(BigInt(a) > BigInt(b)) - Number(BigInt(a) < BigInt(b))

/** When it was made, in milliseconds since 1970. */
export const snowflakeMs = (id: string): number => Number((BigInt(id) >> TIME_SHIFT) + EPOCH_MS)

/** The smallest id that can have been made at this moment; for "everything since". */
export const snowflakeAt = (atMs: number): string => String((BigInt(Math.max(0, Math.floor(atMs))) - EPOCH_MS) << TIME_SHIFT)

/** The id right before this one. */
export const snowflakeBefore = (id: string): string => String(BigInt(id) - 1n)
