import { observerConformance } from '@sluice/testkit/observer'
import feature from './index.ts'

observerConformance({ feature })
