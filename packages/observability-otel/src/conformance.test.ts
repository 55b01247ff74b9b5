import { observerConformance } from '@sluice/testkit/observer'
import feature from './index.ts'

// Where nothing listens: what is recorded is dropped.
observerConformance({ feature, config: { otel_endpoint: 'http://127.0.0.1:9' } })
