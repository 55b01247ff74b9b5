/** Structured logging. The sink masks every `Secret` and values under keys that look like credentials. */
export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  /** The field `error` carries the cause; its stack is printed only at level debug. */
  error(message: string, fields?: LogFields): void
}
