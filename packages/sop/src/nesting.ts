/** How deep JSON from outside may go: deeper, code that walks a value could run out of stack. */

export const NESTING_MAX = 64

export function isNestedTooDeeply(value: unknown, levelsLeft = NESTING_MAX): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levelsLeft === 0 || Object.values(value).some((member) => isNestedTooDeeply(member, levelsLeft - 1))
}
