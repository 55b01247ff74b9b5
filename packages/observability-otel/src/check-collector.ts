/** The check of `sluice doctor`: sends one span to the collector and reports its answer. */
import { signalScope } from '@sluice/kit'
import { type Clock, errorText, type Finding } from '@sluice/sdk'
import type { Target } from './collector.ts'
import type { SpanObservation } from './describe-span.ts'

interface CheckOptions {
  readonly clock: Clock
  readonly fetch: typeof fetch
  readonly signal: AbortSignal
}

/** Shorter than that of the daemon, because an operator waits for the result. */
const EXPORT_MS_MAX = 1500
const CHECK_MS_MAX = 3000

const FIX = 'start a collector that accepts OTLP over HTTP at this address, or set [observability] otel_endpoint'

export async function checkCollector(target: Target, { clock, fetch, signal }: CheckOptions): Promise<readonly Finding[]> {
  const { url } = target
  const { origin, pathname } = new URL(url)
  // Without the query, which may contain a key.
  const address = `${origin}${pathname}`
  const { collectWarnings, openCollector } = await import('./collector.ts')
  const collector = openCollector(target, EXPORT_MS_MAX)
  const exporter = collectWarnings()
  using limit = signalScope([signal], CHECK_MS_MAX)
  const inTime = limit.signal
  inTime.addEventListener('abort', () => collector.close(), { once: true })
  try {
    await collector.send([probeSpan(clock)])
    if (inTime.aborted) throw new Error('the answer did not end in time')
  } catch (error) {
    return [{ status: 'fail', detail: `${address}: ${await failureOf(url, error, fetch, inTime)}`, fix: FIX }]
  } finally {
    exporter.stop()
    collector.close()
  }
  if (exporter.warnings.length > 0)
    return [{ status: 'warn', detail: `${address} answered, but did not confirm that it accepted the span`, fix: FIX }]
  return [{ status: 'ok', detail: `${address} accepted a span` }]
}

/** Describes a failure. The exporter's error does not contain the status of a retryable answer, so another request reads it. */
async function failureOf(url: string, error: unknown, fetch: CheckOptions['fetch'], signal: AbortSignal): Promise<string> {
  const text = errorText(error)
  if (!text.includes('retryable status')) return text
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"resourceSpans":[]}',
      signal,
    })
    await answer.body?.cancel()
    return `the collector answered ${answer.status}`
  } catch (failure) {
    return errorText(failure)
  }
}

/** Returns a span of a tool call that did not happen. */
function probeSpan(clock: Clock): SpanObservation {
  const [traceId = '', spanId = ''] = [32, 16].map((chars) => crypto.randomUUID().replaceAll('-', '').slice(0, chars))
  const trace = { traceId, spanId, parentId: null }
  return { kind: 'tool_call', tool: 'doctor', outcome: 'ok', span: { trace, startMs: clock.nowMs(), tookMs: 0 } }
}
