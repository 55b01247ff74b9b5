/** Draws a chart with uPlot. The page loads this module once it has nothing else to do. */
import uPlot from 'uplot'
import { kept } from './kept.ts'

const day = kept(() => new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' }))
const hour = kept(() => new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }))
const whole = kept(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' }))
const DAY_SECS = 86_400

export interface Plotted {
  /** The times in seconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly {
    readonly name: string
    readonly values: readonly (number | null)[]
    readonly color: 'accent' | 'info' | 'warn'
  }[]
  readonly format: (value: number) => string
  readonly height: number
}

/** Draws it into an element, until the returned function is called. */
export function plot(element: HTMLElement, { times, series, format, height }: Plotted): () => void {
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
          values: (_, ticks) => ticks.map((tick) => (range > DAY_SECS * 2 ? day : hour)().format(tick * 1000)),
        },
        { ...axis, size: 64, values: (_, ticks) => ticks.map(format) },
      ],
      series: [
        { label: 'Time', value: (_, time) => (time === null ? '—' : whole().format(time * 1000)) },
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
}
