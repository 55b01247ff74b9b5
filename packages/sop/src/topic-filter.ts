/** MQTT topic filters: which are valid, and which of many match a topic, found without looking at the others (§2.4). */

const BYTES_MAX = 65_535

/** What is wrong with a filter, as the end of a sentence; undefined: nothing. */
export function filterProblem(filter: string): string | undefined {
  if (filter === '') return 'a topic has at least one character'
  if (filter.includes('\0')) return 'a topic has no null character'
  if (Buffer.byteLength(filter) > BYTES_MAX) return `a topic has at most ${BYTES_MAX} bytes`
  const levels = filter.split('/')
  if (levels[0] === '$share') return 'a subscription that others share brings each message to one of them only'
  if (levels.some((level) => level.length > 1 && /[+#]/.test(level))) return '+ and # stand for whole levels, between slashes'
  if (levels.slice(0, -1).includes('#')) return '# stands for all further levels, so nothing follows it'
  return undefined
}

/** Most have only one of the three. */
interface Node<Value> {
  below: Map<string, Node<Value>> | null
  /** Of the filter that ends here. */
  here: Value[] | null
  /** Of the filter that goes on with `#`. */
  rest: Value[] | null
}

const newNode = <Value>(): Node<Value> => ({ below: null, here: null, rest: null })

/** Values by topic filter. */
export class TopicFilters<Value> {
  readonly #root = newNode<Value>()

  /** The filter is one that `filterProblem` has nothing against. */
  add(filter: string, value: Value): void {
    const levels = filter.split('/')
    const isOpen = levels.at(-1) === '#'
    let node = this.#root
    for (const level of isOpen ? levels.slice(0, -1) : levels) {
      node.below ??= new Map()
      const next = node.below.get(level) ?? newNode<Value>()
      node.below.set(level, next)
      node = next
    }
    const values = (isOpen ? node.rest : node.here) ?? []
    values.push(value)
    if (isOpen) node.rest = values
    else node.here = values
  }

  /** The values of all filters that match a topic, which has no wildcards. `#` also matches the level above it. */
  match(topic: string): Value[] {
    const levels = topic.split('/')
    // What brokers say of themselves is asked for by name only.
    const isHidden = topic.startsWith('$')
    const found: Value[] = []
    let nodes = [this.#root]
    for (const [depth, level] of levels.entries()) {
      const next: Node<Value>[] = []
      for (const node of nodes) {
        const byName = node.below?.get(level)
        if (byName) next.push(byName)
        if (depth === 0 && isHidden) continue
        if (node.rest) found.push(...node.rest)
        const byAny = node.below?.get('+')
        if (byAny && byAny !== byName) next.push(byAny)
      }
      nodes = next
    }
    for (const { here, rest } of nodes) {
      if (here) found.push(...here)
      if (rest) found.push(...rest)
    }
    return found
  }
}
