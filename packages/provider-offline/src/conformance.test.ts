import { providerConformance } from '@sluice/testkit/provider'
import feature from './index.ts'

providerConformance({
  feature,
  settings: [() => ({ kind: 'offline' })],
  invalid: [],
  detects: [],
  except: [{ rule: 'network', why: 'the offline provider makes no requests' }],
})
