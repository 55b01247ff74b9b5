/** Trace export over OTLP/HTTP, with `[observability] backend = "otel"` (§5 rule 6). */
import { randomUUID } from 'node:crypto'
import { defineFeature } from '@sluice/sdk'
import { checkCollector } from './check-collector.ts'
import { otelSection } from './config.ts'
import { SpanQueue } from './span-queue.ts'
import { tracesUrl } from './traces-url.ts'

export default defineFeature({
  id: 'observability-otel',
  section: otelSection,
  build(host, { otel_endpoint, otel_service_name }) {
    const target = { url: tracesUrl(otel_endpoint), serviceName: otel_service_name, instanceId: randomUUID() }
    const queue = new SpanQueue({
      clock: host.clock,
      log: host.log,
      // At the first spans and not in `register`, which also runs where another backend is chosen.
      open: async () => new (await import('./collector-thread.ts')).CollectorThread(target),
    })
    return {
      observers: [{ name: 'otel', traces: true, record: (observation) => queue.add(observation) }],
      check: (signal) => checkCollector(target, { clock: host.clock, fetch: host.fetch, signal }),
      close: () => queue.close(),
    }
  },
})
