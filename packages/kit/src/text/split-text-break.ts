/** Finds the best place to break a text, and the place where the text continues after the break. */

export interface Window {
  /** The largest index of a break; it is before the end of the text. */
  readonly end: number
  /** Returns true where a newline or a space must not be used for the break. */
  avoid(at: number): boolean
}

/**
 * Returns a place between `from` and `end`: before a blank line, else a newline, else a space, each only in the second half, else
 * between two characters as people see them. Avoids places at which a line would begin or end with a code fence that the text did
 * not have, unless every place is of this kind.
 */
export function bestBreak(text: string, from: number, { end, avoid }: Window): number {
  // The three units after the end decide whether a character ends there.
  const window = text.slice(from, end + 3)
  const isAvoided = (at: number): boolean => avoid(from + at)
  const last = endOfWhole(window, end - from)
  const middle = last / 2

  const newline = newlineIn(window, { last, middle, isAvoided })
  if (newline >= 0) return from + newline

  const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(window)
  const cutsMarks = (at: number): boolean => {
    const next = resume(text, from + at)
    return text[next - 1] !== '\n' && /`{3}|~{3}/.test(text.slice(Math.max(from, next - 2), next + 3))
  }
  for (let at = window.lastIndexOf(' ', last); at >= middle; at = window.lastIndexOf(' ', at - 1)) {
    // The last one of several spaces counts.
    if (window[at + 1] === ' ' || characters.containing(at)?.segment !== ' ') continue
    if (!isAvoided(at) && !cutsMarks(at)) return from + at
  }

  const startOf = (at: number): number => characters.containing(at)?.index ?? at
  // a character longer than the window is cut
  const whole = startOf(last) || last
  let hard = whole
  while (hard > middle && cutsMarks(hard)) hard = startOf(hard - 1)
  return from + (hard > middle ? hard : whole)
}

/** Returns `last`, or the newline before its line when that line begins with a code fence and is not the first one. */
function endOfWhole(window: string, last: number): number {
  const line = window.lastIndexOf('\n', last - 1) + 1
  const marks = /[ \t]*(?:`{3}|~{3})/y
  marks.lastIndex = line
  return line > 0 && window[last] !== '\n' && marks.test(window) ? line - 1 : last
}

interface Half {
  readonly last: number
  readonly middle: number
  isAvoided(at: number): boolean
}

/** Returns the last newline before a blank line, else the last newline; -1 without a newline. */
function newlineIn(window: string, { last, middle, isAvoided }: Half): number {
  const blankLine = /\n[ \t\r]*\n/y
  let found = -1
  for (let at = last; at >= middle && at >= 0; at--) {
    if (window[at] !== '\n' || isAvoided(at)) continue
    blankLine.lastIndex = at
    if (blankLine.test(window)) return at
    if (found < 0) found = at
  }
  return found
}

/**
 * Returns where the text continues after a break at `at`. The white space there is dropped, but not the indentation of a line, and not
 * a space that carries a mark.
 */
export function resume(text: string, at: number): number {
  const space = /\s*/y
  space.lastIndex = at
  const run = space.exec(text)?.[0] ?? ''
  const next = at + run.length
  if (next === text.length) return next
  const newline = run.lastIndexOf('\n')
  if (newline >= 0) return at + newline + 1
  const mark = /[\p{M}\p{Grapheme_Extend}\p{Emoji_Modifier}\u200d]/uy
  mark.lastIndex = next
  return run !== '' && mark.test(text) ? next - 1 : next
}
