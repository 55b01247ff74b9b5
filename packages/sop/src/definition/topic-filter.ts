/** MQTT topic filters: validation, and a tree that finds the filters matching a topic without testing each of them. */

const BYTES_MAX = 65_535

/** Returns why a filter is invalid, as the end of a sentence; undefined when it is valid. */
export function filterProblem(filter: string): string | undefined {
  if (filter === '') return 'a topic has at least one character'
  if (filter.includes('\0')) return 'a topic has no null character'
  if (Buffer.byteLength(filter) > BYTES_MAX) return `a topic has at most ${BYTES_MAX} bytes`
  const levels = filter.split('/')
  if (levels[0] === '$share') return 'a shared subscription ($share) delivers each message to only one of its subscribers'
  if (levels.some((level) => level.length > 1 && /[+#]/.test(level))) return '+ and # must stand for a whole level, between slashes'
  if (levels.slice(0, -1).includes('#')) return '# stands for all further levels, so it must be the last one'
  return undefined
}

/** Most nodes have only one of the three. */
interface Node<Value> {
  below: Map<string, Node<Value>> | null
  /** The values of the filter that ends here. */
  here: Value[] | null
  /** The values of the filter that goes on with `#`. */
  rest: Value[] | null
}

const newNode = <Value>(): Node<Value> => ({ below: null, here: null, rest: null })

/** A multimap from topic filters to values. */
export class TopicFilters<Value> {
  readonly #root = newNode<Value>()

  /** `filter` must be valid. */
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

  /** Returns the values of all filters that match a topic without wildcards. `#` also matches the level above it. */
  match(topic: string): Value[] {
    const levels = topic.split('/')
    // A wildcard at the first level does not match a broker's own topics, such as $SYS.
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
