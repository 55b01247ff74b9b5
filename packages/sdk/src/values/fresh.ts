/** Tells whether a Unix timestamp in seconds is within `windowSecs` of now, in the past or the future. */
export function isFresh(timestampSecs: number, nowMs: number, windowSecs: number): boolean {
  return Number.isFinite(timestampSecs) && Math.abs(nowMs / 1000 - timestampSecs) <= windowSecs
}
