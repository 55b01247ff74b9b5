/** Text-format metrics for `GET /metrics` with `[observability] backend = "textmetrics"` (docs/contract.md#observability). */
import { defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { TextMetrics } from './text-metrics.ts'

export default defineFeature({
  id: 'observability-metrics',
  section: {
    path: 'observability',
    schema: v.object({
      metrics_loopback_only: v.optional(v.pipe(v.boolean(), v.description('Allow GET /metrics only from this machine')), false),
    }),
  },
  build: (host, { metrics_loopback_only }) => ({ observers: [new TextMetrics(host, metrics_loopback_only)] }),
})
