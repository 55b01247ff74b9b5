/** Assigns the aliases `adapter0`, `adapter1`, …, which stay with an adapter across restarts and unplugging. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import type { FoundAdapter } from './find-adapters.ts'

const KEY = 'aliases'
/** The adapters to remember. Beyond this number the one that was not seen for longest is forgotten. */
const REMEMBERED_MAX = 64

/** The stored form; `place` is the adapter's `port`. */
const remembered = v.array(v.object({ alias: v.string(), kind: v.string(), serial: v.string(), place: v.string() }))
type Remembered = v.InferOutput<typeof remembered>[number]

/**
 * Returns the connected adapters under their aliases. An adapter is recognized by its serial number. One without a serial number is
 * recognized by its port; at an unknown port it takes over the alias of a missing adapter of the same kind that has no serial
 * number either.
 */
export async function assignAliases(keyValue: KeyValue, present: readonly FoundAdapter[]): Promise<ReadonlyMap<string, FoundAdapter>> {
  for (;;) {
    const before = await keyValue.get(KEY)
    const stored = v.safeParse(remembered, before)
    const known = stored.success ? stored.output : []
    const { assigned, next } = assign(known, present)
    // When another process has assigned aliases meanwhile, these are assigned again on top of them.
    if (JSON.stringify(next) === JSON.stringify(known) || (await keyValue.swap(KEY, before, next)))
      return new Map([...assigned].toSorted(([one], [other]) => one.localeCompare(other, 'en', { numeric: true })))
  }
}

function assign(known: readonly Remembered[], present: readonly FoundAdapter[]) {
  const assigned = new Map<string, FoundAdapter>()
  /** Assigns the first free known alias that matches. Returns whether there was one. */
  const assignKnown = (adapter: FoundAdapter, matches: (old: Remembered) => boolean): boolean => {
    const old = known.find((candidate) => candidate.kind === adapter.kind && !assigned.has(candidate.alias) && matches(candidate))
    if (old) assigned.set(old.alias, adapter)
    return old !== undefined
  }

  const unrecognized = present.filter((adapter) => !assignKnown(adapter, (old) => isRecognized(adapter, old)))
  const newcomers = unrecognized.filter((adapter) => adapter.serial !== '' || !assignKnown(adapter, (old) => old.serial === ''))
  const isFree = (alias: string) => !assigned.has(alias) && !known.some((old) => old.alias === alias)
  for (const adapter of newcomers) {
    let number = 0
    while (!isFree(`adapter${number}`)) number++
    assigned.set(`adapter${number}`, adapter)
  }

  const connected = [...assigned].map(([alias, { kind, serial, port }]) => ({ alias, kind, serial, place: port }))
  const missing = known.filter(({ alias }) => !assigned.has(alias))
  return { assigned, next: [...connected, ...missing].slice(0, REMEMBERED_MAX) }
}

const isRecognized = ({ serial, port }: FoundAdapter, old: Remembered): boolean =>
  serial === '' ? old.serial === '' && old.place === port : old.serial === serial
