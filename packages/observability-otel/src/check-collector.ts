/** For `sluice doctor`: one span is sent to the collector, and what it answered is told. */

import { signalScope } from '@sluice/kit'
import { type Clock, errorText, type Finding } from '@sluice/sdk'
import type { Target } from './collector.ts'
import type { Spanned } from './spanned.ts'

interface CheckOptions {
  readonly clock: Clock
  readonly fetch: typeof fetch
  readonly signal: AbortSignal
}

/** Somebody waits for the answer. */
const EXPORT_MS_MAX = 1500
const CHECK_MS_MAX = 3000

const FIX = 'start a collector that takes OTLP over HTTP there, or set [observability] otel_endpoint'

export async function checkCollector(target: Target, { clock, fetch, signal }: CheckOptions): Promise<readonly Finding[]> {
  const { url } = target
  const { origin, pathname } = new URL(url)
  const shown = `${origin}${pathname}`
  const [{ openCollector }, { hearNotes }] = await Promise.all([import('./collector.ts'), import('./hear-notes.ts')])
  const collector = openCollector(target, EXPORT_MS_MAX)
  const heard = hearNotes()
  using limit = signalScope([signal], CHECK_MS_MAX)
  const inTime = limit.signal
  inTime.addEventListener('abort', () => collector.close(), { once: true })
  try {
    await collector.send([proof(clock)])
    if (inTime.aborted) throw new Error('its answer came to no end')
  } catch (error) {
    return [{ status: 'fail', detail: `${shown}: ${await answerOf(url, error, { fetch, signal: inTime })}`, fix: FIX }]
  } finally {
    heard.stop()
    collector.close()
  }
  if (heard.notes.length > 0) return [{ status: 'warn', detail: `${shown} answered, but not as a collector that took the span`, fix: FIX }]
  return [{ status: 'ok', detail: `${shown} took a span` }]
}

/** The exporter does not say with which status it was told to come back later. */
async function answerOf(url: string, error: unknown, { fetch, signal }: Pick<CheckOptions, 'fetch' | 'signal'>): Promise<string> {
  const said = errorText(error)
  if (!said.includes('retryable status')) return said
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

/** What doctor sends: a request nobody made. */
function proof(clock: Clock): Spanned {
  const [traceId = '', spanId = ''] = [32, 16].map((chars) => crypto.randomUUID().replaceAll('-', '').slice(0, chars))
  const trace = { traceId, spanId, parentId: null }
  return { kind: 'tool_call', tool: 'doctor', outcome: 'ok', span: { trace, startMs: clock.nowMs(), tookMs: 0 } }
}
