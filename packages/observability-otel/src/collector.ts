/** The collector behind OTLP over HTTP, by the exporter of OpenTelemetry. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AppError } from '@sluice/sdk'
import type { Spanned } from './spanned.ts'
import { ToldSpan } from './told-span.ts'

export interface Target {
  readonly url: string
  readonly serviceName: string
  /** Tells this run of the daemon from others of the same service. */
  readonly instanceId: string
}

export interface Collector {
  /** Resolves once it has taken them. One batch at a time. */
  send(batch: readonly Spanned[]): Promise<void>
  /** Breaks off what is under way, and lets go of everything; another `send` begins anew. */
  close(): void
}

/** One request, and its repeats where the collector asks for them or is not there. */
const EXPORT_MS_MAX = 10_000
/** A batch that was given up may still be on its way while the next one is sent. */
const REQUESTS_MAX = 4

/** Also reads the standard `OTEL_EXPORTER_OTLP_HEADERS`, `_CERTIFICATE` and `_COMPRESSION`. */
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
          batch.map((observation) => new ToldSpan(observation, resource)),
          ({ error, code }) => {
            if (code === 0) resolve()
            else reject(new AppError('upstream', refusalOf(error), { cause: error }))
          },
        )
      }),
    close: () => agent.destroy(),
  }
}

/** Without the body of the answer, which can be anything. */
function refusalOf(error: (Error & { readonly code?: unknown }) | undefined): string {
  if (typeof error?.code === 'number') return `the collector answered ${error.code}`
  return error?.message ?? 'the collector did not take them'
}
