/** The log: one line per message, for people at a terminal or as JSON; nothing in it can throw, and no credential shows. */
import { type Clock, type LogFields, type Logger, printableLine, type Secret, withoutSecrets } from '@sluice/sdk'
import { printableFields, redactText } from './log-fields.ts'
import { createRepeatGuard, type Verdict } from './log-repeats.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface ComponentLogger extends Logger {
  /** A logger whose lines carry the component's name; below another, in place of that one's. The level is shared. */
  child(component: string): ComponentLogger
  /** For this logger and every other made from the same one. */
  setLevel(level: LogLevel): void
}

/** What is written to: standard error, or a list in a test. Its `error` events are its owner's to handle. */
export interface LogStream {
  readonly isTTY?: boolean | undefined
  write(line: string): unknown
}

export interface LogOptions {
  readonly level: LogLevel
  /** `auto`: text at a terminal, JSON elsewhere. */
  readonly format: 'auto' | 'text' | 'json'
  readonly stream: LogStream
  readonly clock: Pick<Clock, 'nowMs'>
  readonly component?: string
  /** Values that must not show, whoever says them. */
  readonly secrets?: () => readonly Secret[]
  /** Of the environment: set and not empty, there are no colours. */
  readonly noColor?: string | undefined
}

interface Entry {
  readonly atMs: number
  readonly level: LogLevel
  readonly component: string | undefined
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

const RANKS = { debug: 0, info: 1, warn: 2, error: 3 } as const satisfies Record<LogLevel, number>
const COLOURS = { debug: 90, info: 32, warn: 33, error: 31 } as const satisfies Record<LogLevel, number>
const LINE_CHARS_MAX = 65_536
/** Lines of one message with the same fields that are written in a minute. */
const REPEATS_MAX = 20
/** Warnings and errors of one message that are written in a minute, whatever their fields. */
const TROUBLES_MAX = 200

const NOT_LIMITED: Verdict = { isTooMany: false, dropped: 0 }

export function createLogger(options: LogOptions): ComponentLogger {
  const { stream, clock, noColor = process.env.NO_COLOR, secrets = () => [] } = options
  const isText = options.format === 'text' || (options.format === 'auto' && stream.isTTY === true)
  const hasColours = isText && stream.isTTY === true && !noColor
  const shared = { level: options.level }
  const repeats = createRepeatGuard(REPEATS_MAX)
  const troubles = createRepeatGuard(TROUBLES_MAX)

  const write = (level: LogLevel, component: string | undefined, message: string, fields: LogFields): void => {
    try {
      const atMs = clock.nowMs()
      const values = secrets().map((secret) => secret.reveal())
      const hide = (text: string): string => withoutSecrets(text, values)
      const printed = printableFields(fields, { withStack: shared.level === 'debug', hide })
      const entry: Entry = { atMs, level, component, message: redactText(String(message), hide), fields: printed }
      const kind = `${level} ${component} ${entry.message}`
      const same = repeats(`${kind} ${JSON.stringify(printed)}`, atMs)
      if (same.isTooMany) return
      const alike = RANKS[level] >= RANKS.warn ? troubles(kind, atMs) : NOT_LIMITED
      if (alike.isTooMany) return
      const dropped = same.dropped + alike.dropped
      const told = dropped > 0 ? { ...entry, fields: { ...printed, repeated: dropped } } : entry
      const line = isText ? textLine(told, hasColours) : jsonLine(told)
      stream.write(`${withoutSecrets(line, secrets().flatMap(spellings))}\n`)
    } catch {
      // A line that cannot be written must not take the daemon with it.
    }
  }

  const component = (name: string | undefined): ComponentLogger => {
    const at =
      (level: LogLevel) =>
      (message: string, fields: LogFields = {}): void => {
        if (RANKS[level] >= RANKS[shared.level]) write(level, name, message, fields)
      }
    return {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: component,
      setLevel(level) {
        shared.level = level
      },
    }
  }
  return component(options.component)
}

function jsonLine({ atMs, level, component, message, fields }: Entry): string {
  const head = { time: new Date(atMs).toISOString(), level, ...(component !== undefined && { component }), message }
  const named = Object.entries(fields).map(([name, value]) => [name in head ? `${name}_` : name, value])
  const line = jsonText({ ...head, ...Object.fromEntries(named) })
  return line.length > LINE_CHARS_MAX ? jsonText({ ...head, cut: `${line.length} characters` }) : line
}

function textLine({ atMs, level, component, message, fields }: Entry, hasColours: boolean): string {
  const paint = (code: number, text: string): string => (hasColours ? `\u001b[${code}m${text}\u001b[39m` : text)
  const values = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${paint(90, `${printableLine(name)}=`)}${textValue(value)}`,
  )
  const label = paint(COLOURS[level], level.toUpperCase().padEnd(5))
  const line = `${new Date(atMs).toISOString()} ${label} ${component === undefined ? '' : `[${printableLine(component)}] `}${printableLine(message)}${values.join('')}`
  return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line
}

const textValue = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return typeof value === 'string' && /[\s"=]|^$/.test(text) ? printableLine(JSON.stringify(text)) : printableLine(text)
}

/** A secret as it may stand in a line: as it is, in JSON, and in text for people. */
const spellings = (secret: Secret): string[] => {
  const plain = secret.reveal()
  return [plain, jsonText(plain).slice(1, -1), printableLine(plain)]
}

/** A line of JSON in which nothing is a command to a terminal or reorders the line. */
const jsonText = (value: unknown): string => printableLine(JSON.stringify(value))
