/** A strict parser of the Prometheus text exposition format 0.0.4. */

/** The parsed metrics. */
export interface TextMetrics {
  /** The type of each metric: `counter`, `gauge` or `histogram`. */
  readonly types: ReadonlyMap<string, string>
  /** The value of each series, keyed as written, such as `sluice_turns_total{source="ws"}`. */
  readonly values: ReadonlyMap<string, number>
}

const COMMENT = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/

/** Throws an `Error` with the first line that breaks the format or repeats a series. */
export function parseTextMetrics(body: string): TextMetrics {
  if (!body.endsWith('\n')) throw new Error('the last line has no line break')
  const types = new Map<string, string>()
  const values = new Map<string, number>()
  for (const line of body.split('\n')) {
    if (line === '') continue
    const [, word, named = '', rest = ''] = COMMENT.exec(line) ?? []
    if (word === 'TYPE') types.set(named, rest)
    if (word) continue
    const [, name = '', labels = '', written = ''] = SAMPLE.exec(line) ?? []
    const metric = name.replace(/_(bucket|sum|count)$/, '')
    if (!types.has(name) && types.get(metric) !== 'histogram') throw new Error(`not a sample of a declared metric: ${line}`)
    const value = written === '+Inf' ? Number.POSITIVE_INFINITY : Number(written)
    if (Number.isNaN(value) && written !== 'NaN') throw new Error(`not a number: ${line}`)
    if (values.has(name + labels)) throw new Error(`repeated series: ${line}`)
    values.set(name + labels, value)
  }
  return { types, values }
}
