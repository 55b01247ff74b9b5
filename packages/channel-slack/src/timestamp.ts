/** Slack's message ids are times, `1767225600.000100`: unique in their conversation, and in order as texts. */

const TIMESTAMP = /^\d{10}\.\d{6}$/

export const isTimestamp = (value: string): boolean => TIMESTAMP.test(value)

/** Milliseconds since 1970, rounded down. */
export const timestampMs = (timestamp: string): number => Number(timestamp.slice(0, 10)) * 1000 + Number(timestamp.slice(11, 14))

export const timestampAt = (ms: number): string =>
  `${String(Math.floor(ms / 1000)).padStart(10, '0')}.${String(Math.floor(ms % 1000)).padStart(3, '0')}000`

/** A moment before, so that the message itself comes after it. */
export const timestampBefore = (timestamp: string): string => timestampAt(timestampMs(timestamp) - 1)

export function later(one: string, other: string): string {
  if (one < other) return other
  return one
}
