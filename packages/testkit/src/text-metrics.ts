/** A strict reader of the text exposition format 0.0.4. */

export interface TextMetrics {
  /** By metric: `counter`, `gauge`, `histogram`. */
  readonly types: ReadonlyMap<string, string>
  /** By series as written, such as `sluice_turns_total{source="ws"}`. */
  readonly values: ReadonlyMap<string, number>
}

const COMMENT = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/

/** Throws an `Error` naming the line that is not of the format, or that repeats a series. */
export function parseTextMetrics(body: string): TextMetrics {
  if (!body.endsWith('\n')) throw new Error('the last line does not end')
  const types = new Map<string, string>()
  const values = new Map<string, number>()
  for (const line of body.split('\n')) {
    if (line === '') continue
    const [, word, named = '', rest = ''] = COMMENT.exec(line) ?? []
    if (word === 'TYPE') types.set(named, rest)
    if (word) continue
    const [, name = '', labels = '', written = ''] = SAMPLE.exec(line) ?? []
    const metric = name.replace(/_(bucket|sum|count)$/, '')
    if (!types.has(name) && types.get(metric) !== 'histogram') throw new Error(`no sample of a declared metric: ${line}`)
    const value = written === '+Inf' ? Number.POSITIVE_INFINITY : Number(written)
    if (Number.isNaN(value) && written !== 'NaN') throw new Error(`no number: ${line}`)
    if (values.has(name + labels)) throw new Error(`a series twice: ${line}`)
    values.set(name + labels, value)
  }
  return { types, values }
}
