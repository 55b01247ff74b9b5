/** Reads one line of a board. Boards send wrong, garbled and truncated lines, so no function here throws. */
import { type Members, parsedOrUndefined } from '@sluice/kit/foreign-json'

export type Frame =
  /** `id` is null in the dialect without request numbers. */
  | { readonly kind: 'reply'; readonly id: string | null; readonly ok: boolean; readonly value: unknown; readonly error: string }
  | { readonly kind: 'signal'; readonly signal: string; readonly value: unknown }
  /** A request that the line returned as an echo, because no firmware handles it. */
  | { readonly kind: 'echo' }
  | { readonly kind: 'noise' }

/** How many places in a line are tried as the start of a frame. */
const STARTS_MAX = 4
const ERROR_CHARS_MAX = 200
const NOISE: Frame = { kind: 'noise' }

/** Returns the frame in a line, even after other characters; `noise` without a frame. */
export function readFrame(line: string): Frame {
  let start = line.indexOf('{')
  for (let tried = 0; start >= 0 && tried < STARTS_MAX; tried++) {
    const json = parsedOrUndefined(line.slice(start))
    if (typeof json === 'object' && json !== null) return frameOf(json as Members)
    start = line.indexOf('{"', start + 1)
  }
  return NOISE
}

function frameOf({ id, ok, cmd, event, value, result, data, error }: Members): Frame {
  if (typeof cmd === 'string') return { kind: 'echo' }
  if (typeof event === 'string') return isSignalName(event) ? { kind: 'signal', signal: event, value } : NOISE
  if (typeof ok !== 'boolean') return NOISE
  return {
    kind: 'reply',
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : null,
    ok,
    value: result ?? data,
    error: typeof error === 'string' ? plainText(error) : '',
  }
}

const isSignalName = (name: string): boolean => /^[\w.-]{1,64}$/.test(name)

/** Returns text of a board as one short line without control characters, for people and models. */
export const plainText = (text: string): string => text.replace(/\p{C}/gu, ' ').trim().slice(0, ERROR_CHARS_MAX)
