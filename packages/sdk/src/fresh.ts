/** True if a Unix timestamp in seconds lies within `windowSecs` of now, in the past or the future (§8: 300 s). */
export function isFresh(timestampSecs: number, nowMs: number, windowSecs: number): boolean {
  return Number.isFinite(timestampSecs) && Math.abs(nowMs / 1000 - timestampSecs) <= windowSecs
}
