/** Bounds the number of series of a metric, whatever values its labels get. */

/** The number of distinct label sets of one metric. Every further one counts under `other`. */
export const LABEL_SETS_MAX = 1000

export type Labels = Readonly<Record<string, string>>

/** Returns a function that turns label values, in the order of `names`, into labels. It returns at most `LABEL_SETS_MAX` + 1 different label sets. */
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
