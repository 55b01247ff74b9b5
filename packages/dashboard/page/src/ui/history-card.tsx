/** What happened in each hour of a day, a week or a month, as a chart of one figure at a time. */
import { useMemo, useState } from 'preact/hooks'
import type { Got } from '../data/api.ts'
import { useApi } from '../data/queries.ts'
import { Chart } from './chart.tsx'
import { Card, Loaded } from './parts.tsx'
import { integer } from './text.tsx'
import { duration, short, usd } from './values.tsx'

const RANGES = ['day', 'week', 'month'] as const
type Range = (typeof RANGES)[number]
export type History = Got<'/api/history'>
type Hour = History['hours'][number]
/** The chart tells so many models apart; the others are added up. */
const MODELS_MAX = 2
const COLORS = ['accent', 'info', 'warn'] as const
const REFRESH_MS = 60_000

interface Figure {
  readonly name: string
  readonly format: (value: number) => string
  /** The figure of an hour; a figure of models has a series of each. */
  readonly of?: (hour: Hour) => number | null
  readonly ofModel?: (model: Hour['models'][number]) => number
}

const TURNS: Figure = { name: 'Turns', format: short, of: ({ turns }) => turns }
const FAILED: Figure = { name: 'Failed', format: short, of: ({ failed }) => failed }
const TOOK: Figure = { name: 'Duration, 95 %', format: duration, of: ({ p95_ms }) => p95_ms }
const WAITED: Figure = {
  name: 'Longest wait',
  format: (secs) => duration(secs * 1000),
  of: ({ queue_secs }) => queue_secs,
}
const TOKENS: Figure = { name: 'Tokens', format: short, ofModel: ({ input_tokens, output_tokens }) => input_tokens + output_tokens }
const COST: Figure = { name: 'Cost', format: usd, ofModel: ({ cost_usd }) => cost_usd }

/** The figures of the places that have a chart. */
export const FIGURES = {
  all: [TURNS, FAILED, TOOK, WAITED, TOKENS, COST],
  provider: [TURNS, FAILED, TOOK, TOKENS, COST],
  channel: [TURNS, FAILED, TOOK],
  procedure: [{ ...TURNS, name: 'Runs' }, FAILED],
} as const satisfies Readonly<Record<string, readonly Figure[]>>

interface HistoryCardProps {
  readonly of: keyof typeof FIGURES
  readonly channel?: string
  readonly procedure?: string
  /** The last day, when it was loaded with something else. */
  readonly day?: History
}

export function HistoryCard({ of, channel, procedure, day }: HistoryCardProps) {
  const figures: readonly Figure[] = FIGURES[of]
  const [range, setRange] = useState<Range>('day')
  const [at, setAt] = useState(0)
  const isKnown = day !== undefined && range === 'day'
  const query = { range, ...(channel !== undefined && { channel }), ...(procedure !== undefined && { procedure }) }
  const asked = useApi('/api/history', { query }, { enabled: !isKnown, refreshMs: REFRESH_MS })
  // Another range replaces the day once it has arrived, so that the table stays open.
  const history = { ...asked, data: isKnown ? day : (asked.data ?? day) }
  const sum = (value: (hour: Hour) => number) => (history.data?.hours ?? []).reduce((total, hour) => total + value(hour), 0)
  const cost = sum(({ models }) => models.reduce((total, { cost_usd }) => total + cost_usd, 0))
  const figure = figures[at]
  return (
    <Card
      title={
        <>
          The last {range}{' '}
          <span class="quiet">
            {integer(sum(({ turns }) => turns))} {of === 'procedure' ? 'runs' : 'turns'}, {integer(sum(({ failed }) => failed))} failed
            {cost > 0 && `, ${usd(cost)}`}
          </span>
        </>
      }
      actions={
        <Switch
          label="The range of the chart"
          names={RANGES}
          chosen={RANGES.indexOf(range)}
          onChange={(to) => setRange(RANGES[to] ?? 'day')}
        />
      }
      padded
    >
      <Switch label="What the chart shows" names={figures.map(({ name }) => name)} chosen={at} onChange={setAt} />
      <Loaded query={history}>{({ hours }) => figure && <FigureChart hours={hours} figure={figure} />}</Loaded>
    </Card>
  )
}

interface SwitchProps {
  readonly label: string
  readonly names: readonly string[]
  readonly chosen: number
  readonly onChange: (at: number) => void
}

const Switch = ({ label, names, chosen, onChange }: SwitchProps) => (
  <fieldset class="row">
    <legend class="hidden-text">{label}</legend>
    {names.map((name, at) => (
      <button key={name} type="button" class="small" aria-pressed={at === chosen} onClick={() => onChange(at)}>
        {name}
      </button>
    ))}
  </fieldset>
)

function FigureChart({ hours, figure }: { readonly hours: readonly Hour[]; readonly figure: Figure }) {
  const times = useMemo(() => hours.map(({ at }) => Date.parse(at) / 1000), [hours])
  const series = useMemo(() => seriesOf(hours, figure), [hours, figure])
  return <Chart label={`${figure.name} of each hour`} times={times} series={series} format={figure.format} />
}

function seriesOf(hours: readonly Hour[], { name, of, ofModel }: Figure) {
  if (of) return [{ name, values: hours.map(of), color: COLORS[0] }]
  const amountOf = (model: Hour['models'][number]): number => ofModel?.(model) ?? 0
  const totals = new Map<string, number>()
  for (const { models } of hours) for (const one of models) totals.set(one.model ?? '', (totals.get(one.model ?? '') ?? 0) + amountOf(one))
  const names = [...totals].toSorted(([, a], [, b]) => b - a).map(([model]) => model)
  const own = names.slice(0, MODELS_MAX)
  const valuesOf = (isMeant: (model: string) => boolean) =>
    hours.map(({ models }) => models.reduce((sum, one) => sum + (isMeant(one.model ?? '') ? amountOf(one) : 0), 0))
  const series = own.map((model, at) => ({
    name: model || 'no model',
    values: valuesOf((one) => one === model),
    color: COLORS[at] ?? COLORS[0],
  }))
  if (names.length > own.length) series.push({ name: 'other models', values: valuesOf((one) => !own.includes(one)), color: COLORS[2] })
  return series.length > 0 ? series : [{ name, values: hours.map(() => 0), color: COLORS[0] }]
}
