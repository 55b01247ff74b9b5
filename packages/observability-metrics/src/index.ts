/** Text-format metrics for `GET /metrics`, with `[observability] backend = "textmetrics"` (§4.5). */
import { defineFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { textmetrics } from './textmetrics.ts'

export default defineFeature({
  id: 'observability-metrics',
  section: {
    path: 'observability',
    schema: v.object({
      metrics_loopback_only: v.optional(v.pipe(v.boolean(), v.description('True: only this machine may read GET /metrics')), false),
    }),
  },
  build: (host, { metrics_loopback_only }) => ({ observers: [textmetrics(host, metrics_loopback_only)] }),
})
