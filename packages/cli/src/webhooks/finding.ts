/** One line of `sluice webhook check`. */
export interface Finding {
  /** Null: of all channels. */
  readonly channel: string | null
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  readonly fix: string | null
  /** Of the request that was made. */
  readonly took_ms: number | null
}

type Told = Omit<Finding, 'channel' | 'status' | 'fix' | 'took_ms'> & { readonly tookMs?: number }

const finding = (channel: string | null, status: Finding['status'], { check, detail, tookMs }: Told, fix: string | null): Finding => ({
  channel,
  check,
  status,
  detail,
  fix,
  took_ms: tookMs ?? null,
})

export const ok = (channel: string | null, told: Told): Finding => finding(channel, 'ok', told, null)
export const warn = (channel: string | null, told: Told, fix: string): Finding => finding(channel, 'warn', told, fix)
export const fail = (channel: string | null, told: Told, fix: string): Finding => finding(channel, 'fail', told, fix)
