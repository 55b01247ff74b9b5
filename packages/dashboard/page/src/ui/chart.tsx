/** A chart over time, with the same numbers as a table behind it. It is drawn once the page has nothing else to do. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { whenIdle } from '../data/idle.ts'
import { theme } from '../data/theme.ts'
import { kept } from './kept.ts'
import type { Plotted } from './plot.ts'

type ChartProps = Omit<Plotted, 'height'> & { readonly label: string; readonly height?: number }

const whole = kept(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }))
/** The line below a chart that names its series. */
const LEGEND_PIXELS = 30

export function Chart({ label, times, series, format, height = 180 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const [isIdle, setIdle] = useState(false)
  const scheme = theme.value
  useEffect(() => whenIdle(() => setIdle(true)), [])
  useEffect(() => {
    if (!isIdle || times.length === 0) return undefined
    let stop: (() => void) | undefined
    let isOver = false
    // A chart that cannot be loaded leaves its table.
    import('./plot.ts').then(
      ({ plot }) => {
        if (!isOver && place.current) stop = plot(place.current, { times, series, format, height })
      },
      () => undefined,
    )
    return () => {
      isOver = true
      stop?.()
    }
  }, [times, series, format, height, scheme, isIdle])
  return (
    <figure>
      <div ref={place} aria-hidden="true" class="chart" style={{ minHeight: `${height + LEGEND_PIXELS}px` }} />
      <Numbers label={label} times={times} series={series} format={format} />
    </figure>
  )
}

/** The table, whose rows are made once it is opened. */
function Numbers({ label, times, series, format }: ChartProps) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>As a table</summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard.
        <section class="scroll numbers" aria-label={label} tabIndex={0}>
          <table>
            <caption class="hidden-text">{label}</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" class="number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}>
                  <th scope="row">{whole().format(time * 1000)}</th>
                  {series.map(({ name, values }) => (
                    <td key={name} class="number">
                      {shown(values[index], format)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  )
}

const shown = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? '—' : format(value)
