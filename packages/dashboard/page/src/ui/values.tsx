/** Times, durations, amounts and sizes, as the language of the browser writes them. */
import { signal } from '@preact/signals'
import { kept } from './kept.ts'

const absolute = kept(() => new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }))
const clock = kept(() => new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' }))
const relative = kept(() => new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' }))
const money = kept(
  () => new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 4 }),
)
const compact = kept(() => new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 }))
const units = new Map<string, Intl.NumberFormat>()
const byteSize = kept(() => new Intl.NumberFormat(undefined, { notation: 'compact', style: 'unit', unit: 'byte', unitDisplay: 'narrow' }))

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** The present time for texts such as “3 min ago”, moved on each ten seconds. */
const TICK_MS = 10_000
const now = signal(Date.now())
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now()
}, TICK_MS)

function since(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1]
  return relative().format(Math.round(seconds / size), unit)
}

/** A time, shown relative to the present, with the whole date as its title. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (!at) return <span class="quiet">—</span>
  const date = new Date(at)
  return (
    <time class="nowrap" dateTime={at} title={absolute().format(date)}>
      {since((date.getTime() - Math.max(now.value, Date.now())) / 1000)}
    </time>
  )
}

export const ClockTime = ({ at }: { readonly at: string }) => (
  <time class="nowrap" dateTime={at} title={absolute().format(new Date(at))}>
    {clock().format(new Date(at))}
  </time>
)

export const dateText = (at: string | Date): string => absolute().format(new Date(at))
export const usd = (value: number): string => money().format(value)
export const short = (value: number): string => compact().format(value)

type Unit = 'second' | 'millisecond' | 'minute' | 'hour' | 'day'
const seconds = (value: number, unit: Unit): string => {
  const format =
    units.get(unit) ?? new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 1 })
  units.set(unit, format)
  return format.format(value)
}

/** A duration in one unit. */
export function duration(ms: number): string {
  if (ms < 1000) return seconds(Math.round(ms), 'millisecond')
  if (ms < 60_000) return seconds(ms / 1000, 'second')
  if (ms < 3_600_000) return seconds(ms / 60_000, 'minute')
  return ms < 86_400_000 ? seconds(ms / 3_600_000, 'hour') : seconds(ms / 86_400_000, 'day')
}

export const bytes = (value: number): string => byteSize().format(value)
