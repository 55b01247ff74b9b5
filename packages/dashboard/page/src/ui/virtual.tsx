/** A long list of which only the rows in sight exist. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface VirtualProps<Row> {
  readonly label: string
  readonly rows: readonly Row[]
  readonly show: (row: Row) => ComponentChildren
  /** Whether the end of the list stays in sight as it grows. */
  readonly followsEnd: boolean
}

const OVERSCAN = 10
/** The height of a row, in sizes of the text. The styles have it, too. */
const ROW_REM = 2

export function Virtual<Row>({ label, rows, show, followsEnd }: VirtualProps<Row>) {
  const place = useRef<HTMLDivElement>(null)
  const [, setDrawn] = useState(0)
  const [rowHeight] = useState(() => ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize))
  const options = {
    count: rows.length,
    getScrollElement: () => place.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => setDrawn((count) => count + 1),
  }
  const [virtualizer] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(options))
  virtualizer.setOptions(options)
  useEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => {
    virtualizer._willUpdate()
    if (followsEnd && place.current) place.current.scrollTop = place.current.scrollHeight
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
    <section class="virtual" ref={place} aria-label={label} tabIndex={0}>
      <ol style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(({ index, start }) => (
          <li
            key={index}
            aria-setsize={rows.length}
            aria-posinset={index + 1}
            style={{ transform: `translateY(${start}px)`, height: `${rowHeight}px` }}
          >
            {show(rows[index] as Row)}
          </li>
        ))}
      </ol>
    </section>
  )
}
