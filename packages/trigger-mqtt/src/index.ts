/** Messages of an MQTT broker start procedures. See `docs/mqtt.md`. */
import { defineFeature } from '@sluice/sdk'
import { mqttSection } from './config.ts'
import { MqttTrigger } from './trigger.ts'

export default defineFeature({
  id: 'trigger-mqtt',
  section: mqttSection,
  build: (host, config) => (config.enabled ? new MqttTrigger(host, config).parts() : { disabledReason: '`enabled` is false' }),
})
