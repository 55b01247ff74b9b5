/** Sends spans to a collector with the OTLP/HTTP exporter of OpenTelemetry. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AppError } from '@sluice/sdk'
import type { SpanObservation } from './describe-span.ts'
import { ExportedSpan } from './exported-span.ts'

export interface Target {
  readonly url: string
  readonly serviceName: string
  /** Distinguishes this run of the daemon from other instances of the same service. */
  readonly instanceId: string
}

export interface Collector {
  /** Resolves when the collector has accepted the batch. The caller sends one batch at a time. */
  send(batch: readonly SpanObservation[]): Promise<void>
  /** Aborts the request in progress and releases all resources. A later `send` opens them again. */
  close(): void
}

/** The time for one request with its retries. */
const EXPORT_MS_MAX = 10_000
/** A batch that timed out may still be in progress while the next one is sent. */
const REQUESTS_MAX = 4

/**
 * The exporter also reads the standard variables `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE` and
 * `OTEL_EXPORTER_OTLP_COMPRESSION`. `send` rejects with `upstream` if the collector does not accept the batch.
 */
export function openCollector({ url, serviceName, instanceId }: Target, exportMsMax = EXPORT_MS_MAX): Collector {
  const agent = new (url.startsWith('https:') ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: REQUESTS_MAX })
  const exporter = new OTLPTraceExporter({
    url,
    timeoutMillis: exportMsMax,
    concurrencyLimit: REQUESTS_MAX,
    httpAgentOptions: () => agent,
  })
  const resource = resourceFromAttributes({ 'service.name': serviceName, 'service.instance.id': instanceId })
  return {
    send: (batch) =>
      new Promise((resolve, reject) => {
        exporter.export(
          batch.map((observation) => new ExportedSpan(observation, resource)),
          ({ error, code }) => {
            if (code === 0) resolve()
            else reject(new AppError('upstream', refusalOf(error), { cause: error }))
          },
        )
      }),
    close: () => agent.destroy(),
  }
}

/** Returns the reason without the body of the answer, which may contain anything. */
function refusalOf(error: (Error & { readonly code?: unknown }) | undefined): string {
  if (typeof error?.code === 'number') return `the collector answered ${error.code}`
  return error?.message ?? 'the collector did not accept the spans'
}

/** Collects the warnings that the exporter logs on success, such as an unreadable answer or rejected spans. Call `stop` at the end. */
export function collectWarnings(): { readonly warnings: readonly string[]; stop(): void } {
  const warnings: string[] = []
  const add = (message: string) => void warnings.push(message)
  const ignore = () => {}
  diag.setLogger(
    { error: add, warn: add, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  return { warnings, stop: () => diag.disable() }
}
