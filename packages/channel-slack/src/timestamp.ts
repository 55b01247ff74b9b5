/** Slack's message ids are timestamps such as `1767225600.000100`: unique within a conversation, and ordered as texts. */

const TIMESTAMP = /^\d{10}\.\d{6}$/

export const isTimestamp = (value: string): boolean => TIMESTAMP.test(value)

/** Returns milliseconds since 1970, rounded down. */
export const timestampMs = (timestamp: string): number => Number(timestamp.slice(0, 10)) * 1000 + Number(timestamp.slice(11, 14))

/** Returns the first timestamp of the millisecond `ms`, counted since 1970. */
export const timestampAt = (ms: number): string =>
  `${String(Math.floor(ms / 1000)).padStart(10, '0')}.${String(Math.floor(ms % 1000)).padStart(3, '0')}000`

/** Returns a timestamp one millisecond earlier. */
export const timestampBefore = (timestamp: string): string => timestampAt(timestampMs(timestamp) - 1)

/** Returns a timestamp that is later by a part of a millisecond, at most one. */
export const timestampAfter = (timestamp: string): string => timestampAt(timestampMs(timestamp) + 1)

/** Returns the later one of two timestamps; an empty text is earlier than all. */
export const later = (a: string, b: string): string => (a < b ? b : a)
