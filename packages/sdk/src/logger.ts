/** Structured logging. Values under keys that look like credentials, and every `Secret`, are redacted by the sink. */
export type LogFields = Readonly<Record<string, unknown>>

export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  /** `error` as a field carries the cause; its stack is printed at level debug only. */
  error(message: string, fields?: LogFields): void
}
