/** Procedures triggered by messages of an MQTT broker (§2.4). */
import { defineFeature } from '@sluice/sdk'
import { mqttSection } from './config.ts'
import { createTrigger } from './trigger.ts'

export default defineFeature({
  id: 'trigger-mqtt',
  section: mqttSection,
  build: (host, config) => (config.enabled ? createTrigger(host, config) : { off: '`enabled` is false' }),
})
