/** `[channels_config.mqtt]`. */
import { secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { hasCredentials, isBrokerUrl } from './broker-url.ts'

/** Whole levels between slashes, `+` for any one, `#` for all further ones; a shared subscription would bring a message to one of many. */
const TOPIC_FILTER = /^(?!\$share\/)(?!$)(?:(?:[^+#/\0]*|\+)\/)*(?:[^+#/\0]*|\+|#)$/

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether messages of the broker start procedures')), false),
  broker_url: v.optional(
    v.pipe(
      v.string(),
      v.check((url) => !hasCredentials(url), 'It has a user name or password in it; they go into username and password'),
      v.check(isBrokerUrl, 'Not mqtt://host, mqtt://host:port, mqtts://host or mqtts://host:port'),
      v.description('mqtt://host, port 1883 unless it names one; with TLS mqtts://host, port 8883'),
    ),
  ),
  client_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[^\0]{1,128}$/, 'Not 1 to 128 characters'),
      v.description('The name the broker keeps what was not delivered under, of this daemon alone; absent: one is made once'),
    ),
  ),
  topics: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(TOPIC_FILTER, 'Not a topic filter: + and # stand for whole levels, # for the last only'))),
      v.description('Topic filters to subscribe to; empty: those of the triggers of all procedures'),
    ),
    [],
  ),
  qos: v.optional(
    v.pipe(
      v.picklist([0, 1], '0 or 1; with 2 the broker would forget a message before the run it starts is kept, and a crash lose it'),
      v.description('1: every message is delivered until a run of it is kept; 0: those that come while the daemon is down are lost'),
    ),
    1,
  ),
  username: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Absent: none is sent'))),
  password: v.optional(v.pipe(secretText(), v.description('Of that user'))),
  keep_alive_secs: v.optional(
    v.pipe(whole(5, 65_535), v.description('A connection that is silent for longer is asked for a sign of life')),
    30,
  ),
})

export const mqttSection = {
  path: 'channels_config.mqtt',
  schema: v.pipe(
    keys,
    v.check(({ enabled, broker_url }) => !enabled || broker_url !== undefined, 'it is enabled without broker_url'),
    v.check(({ username, password }) => password === undefined || username !== undefined, 'MQTT has no password without username'),
  ),
} as const

export type MqttConfig = v.InferOutput<typeof mqttSection.schema>
