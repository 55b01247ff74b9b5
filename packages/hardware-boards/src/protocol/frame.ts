/** What one line of a board says. Boards lie, stutter and start in mid-sentence: nothing here throws. */
import { type Members, parsedOrUndefined } from '@sluice/kit/foreign-json'

export type Frame =
  /** `id` is null in the dialect that has none. */
  | { readonly kind: 'reply'; readonly id: string | null; readonly ok: boolean; readonly value: unknown; readonly error: string }
  | { readonly kind: 'signal'; readonly signal: string; readonly value: unknown }
  /** Our own words: nobody reads them, or somebody repeats them. */
  | { readonly kind: 'echo' }
  | { readonly kind: 'noise' }

/** How often the beginning of a frame is looked for in a line that begins with something else. */
const STARTS_MAX = 4
const ERROR_CHARS_MAX = 200
const NOISE: Frame = { kind: 'noise' }

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
  if (typeof event === 'string') return isSignal(event) ? { kind: 'signal', signal: event, value } : NOISE
  if (typeof ok !== 'boolean') return NOISE
  return {
    kind: 'reply',
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : null,
    ok,
    value: result ?? data,
    error: typeof error === 'string' ? plainText(error) : '',
  }
}

const isSignal = (name: string): boolean => /^[\w.-]{1,64}$/.test(name)

/** A board's own words for people and models: one short line. */
export const plainText = (text: string): string => text.replace(/\p{C}/gu, ' ').trim().slice(0, ERROR_CHARS_MAX)
