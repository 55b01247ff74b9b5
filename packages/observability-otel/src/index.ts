/** Trace export over OTLP/HTTP with `[observability] backend = "otel"` (docs/tracing.md). */
import { randomUUID } from 'node:crypto'
import { defineFeature } from '@sluice/sdk'
import { checkCollector } from './check-collector.ts'
import { otelSection, tracesUrl } from './config.ts'
import { SpanQueue } from './span-queue.ts'

export default defineFeature({
  id: 'observability-otel',
  section: otelSection,
  build(host, { otel_endpoint, otel_service_name }) {
    const target = { url: tracesUrl(otel_endpoint), serviceName: otel_service_name, instanceId: randomUUID() }
    // Loads the thread's module at the first span, since the feature is built even if another backend is chosen.
    const open = async () => new (await import('./collector-thread.ts')).CollectorThread(target)
    const queue = new SpanQueue(host.clock, host.log, open)
    return {
      observers: [{ name: 'otel', traces: true, record: (observation) => queue.add(observation) }],
      check: (signal) => checkCollector(target, { clock: host.clock, fetch: host.fetch, signal }),
      close: () => queue.close(),
    }
  },
})
