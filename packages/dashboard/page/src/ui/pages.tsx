/** Lists of any length, a page at a time by key. The newest page stays live; an older one holds still until its reader moves on. */
import { useState } from 'preact/hooks'

export interface Paging<Key> {
  /** Where the shown page begins; undefined for the newest. */
  readonly before: Key | undefined
  readonly number: number
  readonly older: (next: Key) => void
  readonly newer: () => void
  readonly newest: () => void
}

/** The pages that a reader has come through. `scope` names the filters: another scope begins again. */
export function usePaging<Key>(scope: string): Paging<Key> {
  const [state, setState] = useState<{ readonly scope: string; readonly trail: readonly Key[] }>({ scope, trail: [] })
  const trail = state.scope === scope ? state.trail : []
  const move = (next: readonly Key[]) => setState({ scope, trail: next })
  return {
    before: trail.at(-1),
    number: trail.length + 1,
    older: (next) => move([...trail, next]),
    newer: () => move(trail.slice(0, -1)),
    newest: () => move([]),
  }
}

interface PagerProps<Key> {
  readonly paging: Paging<Key>
  readonly next: Key | null
  /** What a reader should know about this page. */
  readonly about?: string | undefined
}

export function Pager<Key>({ paging, next, about }: PagerProps<Key>) {
  const { number, older, newer, newest } = paging
  if (number === 1 && next === null) return null
  return (
    <nav class="pager" aria-label="Pages of this list">
      <span class="quiet grow">
        Page {number}
        {about && ` · ${about}`}
      </span>
      {number > 1 && (
        <>
          <button type="button" class="small" onClick={newest}>
            Newest
          </button>
          <button type="button" class="small" onClick={newer}>
            Newer
          </button>
        </>
      )}
      <button type="button" class="small" disabled={next === null} onClick={() => next !== null && older(next)}>
        Older
      </button>
    </nav>
  )
}
