/** The log: one line for each message, as text or JSON. Logging never throws, and no line shows a credential. */
import { type Clock, type LogFields, type Logger, printableLine, type Secret, withoutSecrets } from '@sluice/sdk'
import { logText, type Painted } from './log-text.ts'
import { printableFields, redactText } from './printable-fields.ts'
import { RepeatGuard } from './repeat-guard.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface ComponentLogger extends Logger {
  /** A logger whose lines have this component's name instead of the parent's. It shares the level of the parent. */
  child(component: string): ComponentLogger
  /** Sets the level of this logger and of every other that was made from the same one. */
  setLevel(level: LogLevel): void
}

/** The target of a log: standard error, or a list in a test. Its owner handles its `error` events. */
export interface LogStream {
  readonly isTTY?: boolean | undefined
  write(line: string): unknown
}

export interface LogOptions {
  readonly level: LogLevel
  /** `auto`: text at a terminal, JSON elsewhere. */
  readonly format: 'auto' | 'text' | 'json'
  /** A logger gets each message with its fields, and the name of the component as the field `component`; `format` does not matter then. */
  readonly stream: LogStream | Logger
  readonly clock: Pick<Clock, 'nowMs' | 'sleep'>
  readonly component?: string
  /** Values that no line may show. */
  readonly secrets?: () => readonly Secret[]
  /** Gets each line as JSON, without secrets, in addition to the stream. Must not throw. */
  readonly onLine?: (line: string, level: LogLevel) => void
  /** The variable NO_COLOR of the environment: if it is set and not empty, the text has no colours. */
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
const COLOURS = { debug: 90, info: 32, warn: 33, error: 31, name: 90 } as const satisfies Record<Painted, number>
const LINE_CHARS_MAX = 65_536
/** How often one message with the same fields is written in a minute. */
const REPEATS_MAX = 20
/** How often one warning or error is written in a minute, whatever its fields. */
const PROBLEMS_MAX = 200

export function createLogger(options: LogOptions): ComponentLogger {
  return new LineLog(options).component(options.component)
}

/** Writes the lines of a logger and of all its children. */
class LineLog {
  readonly #write: (entry: Entry) => void
  readonly #clock: Pick<Clock, 'nowMs' | 'sleep'>
  readonly #secrets: () => readonly Secret[]
  /** Limits the same message with the same fields. */
  readonly #repeats: RepeatGuard<Entry>
  /** Limits warnings and errors with the same message, whatever their fields. */
  readonly #problems: RepeatGuard<Entry>
  #level: LogLevel

  constructor({ level, format, stream, clock, secrets = () => [], noColor = process.env.NO_COLOR, onLine }: LogOptions) {
    this.#clock = clock
    this.#secrets = secrets
    this.#level = level
    const write = 'write' in stream ? this.#lineWriter(stream, format, noColor) : passTo(stream)
    this.#write = onLine
      ? (entry) => {
          onLine(this.#masked(jsonLine(entry)), entry.level)
          write(entry)
        }
      : write
    const report = (last: Entry, fields: Entry['fields']): void => this.#writeSafely({ ...last, atMs: clock.nowMs(), fields })
    this.#repeats = new RepeatGuard({
      clock,
      repeatsMax: REPEATS_MAX,
      report: (last, repeated, repeated_secs) => report(last, { ...last.fields, repeated, repeated_secs }),
    })
    this.#problems = new RepeatGuard({
      clock,
      repeatsMax: PROBLEMS_MAX,
      report: (last, repeated, repeated_secs) => report(last, { repeated, repeated_secs }),
    })
  }

  component(name: string | undefined): ComponentLogger {
    const logAt =
      (level: LogLevel) =>
      (message: string, fields: LogFields = {}): void => {
        if (RANKS[level] >= RANKS[this.#level]) this.#log(level, name, message, fields)
      }
    return {
      debug: logAt('debug'),
      info: logAt('info'),
      warn: logAt('warn'),
      error: logAt('error'),
      child: (component) => this.component(component),
      setLevel: (level) => {
        this.#level = level
      },
    }
  }

  #log(level: LogLevel, component: string | undefined, message: string, fields: LogFields): void {
    try {
      const entry = this.#entryOf(level, component, message, fields)
      if (this.#passes(entry)) this.#writeSafely(entry)
    } catch {
      // A line that cannot be printed must not end the daemon.
    }
  }

  #writeSafely(entry: Entry): void {
    try {
      this.#write(entry)
    } catch {
      // A line that cannot be written must not end the daemon.
    }
  }

  #lineWriter(stream: LogStream, format: LogOptions['format'], noColor: string | undefined): (entry: Entry) => void {
    const isText = format === 'text' || (format === 'auto' && stream.isTTY === true)
    const hasColours = isText && stream.isTTY === true && !noColor
    return (entry) => {
      const line = isText ? textLine(entry, hasColours) : jsonLine(entry)
      stream.write(`${this.#masked(line)}\n`)
    }
  }

  #masked(line: string): string {
    return withoutSecrets(line, this.#secrets().flatMap(spellings))
  }

  #entryOf(level: LogLevel, component: string | undefined, message: string, fields: LogFields): Entry {
    const values = this.#secrets().map((secret) => secret.reveal())
    const hide = (text: string): string => withoutSecrets(text, values)
    return {
      atMs: this.#clock.nowMs(),
      level,
      component,
      message: redactText(String(message), hide),
      fields: printableFields(fields, hide, { withStack: this.#level === 'debug' }),
    }
  }

  #passes(entry: Entry): boolean {
    const { level, component, message, fields } = entry
    const kind = `${level} ${component} ${message}`
    if (!this.#repeats.passes(`${kind} ${JSON.stringify(fields)}`, entry)) return false
    return RANKS[level] < RANKS.warn || this.#problems.passes(kind, entry)
  }
}

const passTo =
  (logger: Logger) =>
  ({ level, component, message, fields }: Entry): void =>
    logger[level](message, component === undefined ? fields : { component, ...fields })

function jsonLine({ atMs, level, component, message, fields }: Entry): string {
  const head = { time: new Date(atMs).toISOString(), level, ...(component !== undefined && { component }), message }
  const named = Object.entries(fields).map(([name, value]) => [name in head ? `${name}_` : name, value])
  const line = jsonText({ ...head, ...Object.fromEntries(named) })
  return line.length > LINE_CHARS_MAX ? jsonText({ ...head, cut: `${line.length} characters` }) : line
}

function textLine({ atMs, ...entry }: Entry, hasColours: boolean): string {
  const paint = (what: Painted, text: string): string => (hasColours ? `\u001b[${COLOURS[what]}m${text}\u001b[39m` : text)
  return logText({ time: new Date(atMs).toISOString(), ...entry }, paint)
}

/** The forms that a secret may have in a line: plain, escaped in JSON, and escaped in text. */
const spellings = (secret: Secret): string[] => {
  const plain = secret.reveal()
  return [plain, jsonText(plain).slice(1, -1), printableLine(plain)]
}

/** A line of JSON without control characters: it cannot command a terminal or reorder the line. */
const jsonText = (value: unknown): string => printableLine(JSON.stringify(value))
