/** The newest events, as far as the page remembers them: a bounded list, which a busy gateway fills within seconds. */
import { signal } from '@preact/signals'
import { get } from './api.ts'
import { type Gap, type LiveEvent, onEvent } from './live.ts'

export type Line = (LiveEvent | (Gap & { readonly id: string; readonly timestamp: string })) & { readonly id: string }

const LINES_MAX = 5000
/** Older lines are dropped in one go when there are so many more. */
const SPARE_MAX = 1000
const DRAW_EVERY_MS = 250

/** The types of all events so far. */
export const types = signal<readonly string[]>([])

/** The events, oldest first. Replaced at most four times a second, and not while the page is hidden. */
export const lines = signal<readonly Line[]>([])

/** Follows the events, from the oldest one that the daemon still keeps, until the returned function is called. */
export function follow(): () => void {
  let known: Line[] = []
  let ids = new Set<string>()
  let timer: number | undefined
  let gaps = 0
  const draw = () => {
    timer = undefined
    if (known.length > LINES_MAX + SPARE_MAX) {
      known = known.slice(-LINES_MAX)
      ids = new Set(known.map(({ id }) => id))
    }
    if (document.visibilityState === 'visible') lines.value = known.slice(-LINES_MAX)
  }
  const add = (line: Line) => {
    if (ids.has(line.id)) return
    ids.add(line.id)
    known.push(line)
    if (!types.value.includes(line.type)) types.value = [...types.value, line.type].sort()
    timer ??= window.setTimeout(draw, DRAW_EVERY_MS)
  }
  const stop = onEvent((event) => {
    if (event.type === 'gap') {
      gaps += 1
      add({ ...(event as Gap), id: `gap-${gaps}`, timestamp: new Date().toISOString() })
    } else add(event as LiveEvent)
  })
  get('/api/events/history', { query: { limit: '1000' } }).then(
    ({ events }) => {
      const live = known
      known = []
      ids = new Set()
      for (const event of events as unknown as LiveEvent[]) add(event)
      for (const line of live) add(line)
      draw()
    },
    () => undefined,
  )
  document.addEventListener('visibilitychange', draw)
  return () => {
    stop()
    document.removeEventListener('visibilitychange', draw)
    window.clearTimeout(timer)
    lines.value = []
  }
}
