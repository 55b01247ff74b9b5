/** Reading JSON from outside, with a limit on its nesting: code that walks a deeper value could exhaust the stack. */

export const NESTING_MAX = 64

/** Returns whether a value has more than `levelsLeft` levels of objects and lists. */
export function isNestedTooDeeply(value: unknown, levelsLeft = NESTING_MAX): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levelsLeft === 0 || Object.values(value).some((member) => isNestedTooDeeply(member, levelsLeft - 1))
}

/** Returns the JSON value of a text. Returns the text itself when it is not JSON or is nested too deeply; null stays null. */
export function jsonOrText(text: string | null): unknown {
  if (text === null) return null
  try {
    const value: unknown = JSON.parse(text)
    return isNestedTooDeeply(value) ? text : value
  } catch {
    return text
  }
}
