/** A bound on how many series one metric can have, whatever its labels turn out to hold. */

/** Distinct label sets of one metric; all later ones count under `other`. */
export const LABEL_SETS_MAX = 1000

export type Labels = Readonly<Record<string, string>>

/** Turns label values, in the order of `names`, into labels. Never more than `LABEL_SETS_MAX` + 1 different ones. */
export function createLabelSets(names: readonly string[]): (...values: readonly string[]) => Labels {
  const known = new Map<string, Labels>()
  const others = toLabels(names, () => 'other')
  return (...values) => {
    const key = values.join('\0')
    const found = known.get(key)
    if (found) return found
    if (known.size >= LABEL_SETS_MAX) return others
    const labels = toLabels(names, (index) => values[index] ?? '')
    known.set(key, labels)
    return labels
  }
}

const toLabels = (names: readonly string[], valueAt: (index: number) => string): Labels =>
  Object.fromEntries(names.map((name, index) => [name, valueAt(index)]))
