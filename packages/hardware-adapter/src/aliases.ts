/** `adapter0`, `adapter1`, …: names that stay with an adapter across restarts and unplugging. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import type { FoundAdapter } from './found-adapter.ts'

const KEY = 'aliases'
/** Of remembered adapters; the one not seen for longest is forgotten first. */
const REMEMBERED_MAX = 64

const remembered = v.array(v.object({ alias: v.string(), kind: v.string(), serial: v.string(), place: v.string() }))
type Remembered = v.InferOutput<typeof remembered>[number]

/**
 * The alias of each adapter that is there. One with a serial number is known by it; one without by where it is connected, and
 * plugged in elsewhere it takes over the alias of one of its kind that is gone.
 */
export async function assignAliases(
  keyValue: Pick<KeyValue, 'get' | 'set'>,
  present: readonly FoundAdapter[],
): Promise<ReadonlyMap<string, FoundAdapter>> {
  const before = v.safeParse(remembered, await keyValue.get(KEY))
  const known: readonly Remembered[] = before.success ? before.output : []
  const taken = new Map<string, FoundAdapter>()
  const take = (adapter: FoundAdapter, fits: (old: Remembered) => boolean): boolean => {
    const old = known.find((candidate) => candidate.kind === adapter.kind && !taken.has(candidate.alias) && fits(candidate))
    if (old) taken.set(old.alias, adapter)
    return old !== undefined
  }

  const strangers = present.filter(({ serial, place, ...rest }) => {
    const isSame = (old: Remembered) => (serial === '' ? old.serial === '' && old.place === place : old.serial === serial)
    return !take({ serial, place, ...rest }, isSame)
  })
  const newcomers = strangers.filter((adapter) => adapter.serial !== '' || !take(adapter, (old) => old.serial === ''))
  const isFree = (alias: string) => !taken.has(alias) && !known.some((old) => old.alias === alias)
  for (const adapter of newcomers) {
    let number = 0
    while (!isFree(`adapter${number}`)) number++
    taken.set(`adapter${number}`, adapter)
  }

  const gone = known.filter(({ alias }) => !taken.has(alias))
  const now = [...[...taken].map(([alias, { kind, serial, place }]) => ({ alias, kind, serial, place })), ...gone].slice(0, REMEMBERED_MAX)
  if (JSON.stringify(now) !== JSON.stringify(known)) await keyValue.set(KEY, now)
  return new Map([...taken].toSorted(([one], [other]) => one.localeCompare(other, 'en', { numeric: true })))
}
