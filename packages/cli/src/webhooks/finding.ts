/** The results of `sluice webhook check`. */
import type { Output, Style } from '../context.ts'

/** One result, as `--json` prints it. */
export interface Finding {
  /** Null: the check concerns all channels. */
  readonly channel: string | null
  readonly check: string
  readonly status: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** The cure, unless the status is `ok`. */
  readonly fix: string | null
  /** The duration of the request in milliseconds; null if the check made no request. */
  readonly took_ms: number | null
}

/** The outcome of one check. */
interface Result {
  readonly check: string
  readonly detail: string
  readonly tookMs?: number
}

const finding = (channel: string | null, status: Finding['status'], result: Result, fix: string | null): Finding => ({
  channel,
  check: result.check,
  status,
  detail: result.detail,
  fix,
  took_ms: result.tookMs ?? null,
})

export const ok = (channel: string | null, result: Result): Finding => finding(channel, 'ok', result, null)
export const warn = (channel: string | null, result: Result, fix: string): Finding => finding(channel, 'warn', result, fix)
export const fail = (channel: string | null, result: Result, fix: string): Finding => finding(channel, 'fail', result, fix)

const STYLES: Record<Finding['status'], Style> = { ok: 'green', warn: 'yellow', fail: 'red' }

/** Prints one line for each finding, with its cure on the next line. */
export function printFindings(out: Output, findings: readonly Finding[]): void {
  const channelWidth = Math.max(...findings.map(({ channel }) => channel?.length ?? 0))
  const checkWidth = Math.max(...findings.map(({ check }) => check.length))
  for (const { channel, check, status, detail, fix, took_ms } of findings) {
    const took = took_ms === null ? '' : ` (${took_ms} ms)`
    out.print(
      `${out.style(STYLES[status], status.padEnd(4))}  ${(channel ?? '').padEnd(channelWidth)}  ${check.padEnd(checkWidth)}  ${detail}${took}`,
    )
    if (fix) out.hint(`${' '.repeat(channelWidth + checkWidth + 10)}${fix}`)
  }
}
