/** One line of `sluice doctor`. */
export interface Check {
  /** The subject, such as `sandbox`. */
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** How to repair it; null when nothing is wrong. */
  readonly fix: string | null
}

export const ok = (check: string, detail: string): Check => ({ check, status: 'ok', detail, fix: null })
export const warn = (check: string, detail: string, fix: string): Check => ({ check, status: 'warn', detail, fix })
export const fail = (check: string, detail: string, fix: string): Check => ({ check, status: 'fail', detail, fix })
