import { observerConformance } from '@sluice/testkit/observer'
import feature from './index.ts'

// No collector listens at this address, so all spans are dropped.
observerConformance({ feature, config: { otel_endpoint: 'http://127.0.0.1:9' } })
