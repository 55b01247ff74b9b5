/** A chart over time, drawn by uPlot, with the same numbers as a table for those who cannot see it. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { theme } from '../data/theme.ts'

interface ChartProps {
  readonly label: string
  /** The times in seconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly {
    readonly name: string
    readonly values: readonly (number | null)[]
    readonly color: 'accent' | 'info' | 'warn'
  }[]
  readonly format: (value: number) => string
  readonly height?: number
}

const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const DAY_SECS = 86_400

export function Chart({ label, times, series, format, height = 180 }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const scheme = theme.value
  useEffect(() => {
    const element = place.current
    if (!element || times.length === 0) return
    const style = getComputedStyle(document.documentElement)
    const color = (name: string): string => {
      const probe = document.createElement('span')
      probe.style.color = `var(--${name})`
      element.append(probe)
      const value = getComputedStyle(probe).color
      probe.remove()
      return value
    }
    const quiet = color('quiet')
    const line = color('line')
    const font = `11px ${style.fontFamily}`
    const range = (times.at(-1) ?? 0) - (times[0] ?? 0)
    const axis = { stroke: quiet, font, grid: { stroke: line, width: 1 }, ticks: { show: false } }
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height,
        cursor: { y: false, points: { size: 7 } },
        legend: { live: true },
        scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            values: (_, ticks) => ticks.map((tick) => (range > DAY_SECS * 2 ? day : hour).format(tick * 1000)),
          },
          { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
        ],
        series: [
          { label: 'Time', value: (_, time) => (time === null ? '—' : whole.format(time * 1000)) },
          ...series.map(({ name, color: tone }) => ({
            label: name,
            stroke: color(tone),
            fill: color(tone).replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)'),
            width: 1.5,
            points: { show: times.length < 3 },
            value: (_: uPlot, value: number | null) => (value === null ? '—' : format(value)),
          })),
        ],
      },
      [[...times], ...series.map(({ values }) => [...values])],
      element,
    )
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      chart.destroy()
    }
  }, [times, series, format, height, scheme])
  return (
    <figure>
      <div ref={place} aria-hidden="true" class="chart" />
      <table class="hidden-text">
        <caption>{label}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, index) => (
            <tr key={time}>
              <th scope="row">{whole.format(time * 1000)}</th>
              {series.map(({ name, values }) => (
                <td key={name}>{format(values[index] ?? 0)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  )
}
