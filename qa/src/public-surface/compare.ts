/** Compares a public surface with that of an earlier release. Additions are compatible; removals and narrowing changes are not. */
import type { Item, Items } from './schema-items.ts'

/** `in`: users write it, such as a key or a request. `out`: users read it, such as an answer or an event. */
export type Direction = 'in' | 'out'

export interface Finding {
  readonly item: string
  /** The end of a sentence that begins with the item. */
  readonly change: string
}

/** Returns one finding for each incompatible change, without the parts of removed items. */
export function compareSurface(before: Items, now: Items, direction: Direction): Finding[] {
  const removed = Object.keys(before).filter((item) => !(item in now))
  const gone = new Set(removed)
  const findings = removed.filter((item) => !hasAncestor(item, gone)).map((item) => ({ item, change: 'was removed' }))
  for (const [item, was] of Object.entries(before)) {
    const is = now[item]
    if (is) findings.push(...(direction === 'in' ? narrowed(was, is) : widened(was, is)).map((change) => ({ item, change })))
  }
  if (direction === 'out') return findings
  for (const [item, { required }] of Object.entries(now)) {
    const parent = parentOf(item)
    if (required && !(item in before) && parent !== undefined && parent in before)
      findings.push({ item, change: 'is new and required, so present uses lack it' })
  }
  return findings
}

/** Lists what was accepted and is no longer accepted. */
function narrowed(was: Item, is: Item): string[] {
  const types = missing(was.types ?? [], is.types ?? [])
  const values = is.values ? missing(was.values ?? ['other values'], is.values) : []
  return [
    ...(types.length > 0 ? [`no longer takes ${types.join(', ')}`] : []),
    ...(types.length === 0 && values.length > 0 ? [`no longer takes ${values.map(String).join(', ')}`] : []),
    ...(is.required && !was.required ? ['is now required'] : []),
  ]
}

/** Lists what readers did not have to expect. New values of an enumeration are no change: readers ignore values that they do not know. */
function widened(was: Item, is: Item): string[] {
  const types = missing(is.types ?? [], was.types ?? [])
  return [
    ...(types.length > 0 ? [`may now have the type ${types.join(', ')}`] : []),
    ...(was.required && !is.required ? ['may now be absent'] : []),
  ]
}

/** Returns the members of the first list that the second does not cover. */
const missing = <Value>(some: readonly Value[], all: readonly Value[]): Value[] =>
  some.filter((one) => !all.includes(one) && !all.includes('any' as Value) && !(one === 'integer' && all.includes('number' as Value)))

/** The last part of an item's name: a member, the elements of a list, a tag, or a word. */
const PART = /^(.+)(?:\.[^.([ ]*|\[\]|\([^()]*\)| [^ ]+)$/

/** Returns the name of the whole that an item is a part of. */
const parentOf = (item: string): string | undefined => PART.exec(item)?.[1]

function hasAncestor(item: string, names: ReadonlySet<string>): boolean {
  for (let parent = parentOf(item); parent !== undefined; parent = parentOf(parent)) if (names.has(parent)) return true
  return false
}
