/** The section `[channels_config.mqtt]`. */
import { secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

/**
 * Allows `+` for one whole level and `#` for all further levels. Rejects shared subscriptions, which deliver a message to only
 * one of many clients.
 */
const TOPIC_FILTER = /^(?!\$share\/)(?!$)(?:(?:[^+#/\0]*|\+)\/)*(?:[^+#/\0]*|\+|#)$/

const isBrokerUrl = (url: string): boolean => /^mqtts?:\/\/[^/?#\s]+\/?$/i.test(url) && URL.canParse(url) && URL.parse(url)?.port !== '0'

/** Also true for text before an `@` in a malformed URL, so that no error message quotes it. */
const hasCredentials = (url: string): boolean => url.includes('@')

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether messages of the broker start procedures')), false),
  broker_url: v.optional(
    v.pipe(
      v.string(),
      v.check((url) => !hasCredentials(url), 'The URL contains a user name or password; write them in username and password'),
      v.check(isBrokerUrl, 'Must be mqtt://host, mqtt://host:port, mqtts://host or mqtts://host:port'),
      v.description('mqtt://host with the default port 1883, or mqtts://host for TLS with the default port 8883'),
    ),
  ),
  client_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[^\0]{1,128}$/, 'Must have 1 to 128 characters'),
      v.description('Name under which the broker keeps undelivered messages; no other client may use it. Absent: a random one, made once'),
    ),
  ),
  topics: v.optional(
    v.pipe(
      v.array(
        v.pipe(v.string(), v.regex(TOPIC_FILTER, 'Must be a topic filter: + and # replace whole levels, and # may only be the last one')),
      ),
      v.description('Topic filters to subscribe to; an empty list subscribes to the topics of all triggers'),
    ),
    [],
  ),
  qos: v.optional(
    v.pipe(
      v.picklist(
        [0, 1],
        'Must be 0 or 1; with 2 the broker would forget a message before its run is stored, so that a crash would lose it',
      ),
      v.description('1: the broker delivers a message until its run is stored. 0: messages that arrive while the daemon is down are lost'),
    ),
    1,
  ),
  username: v.optional(v.pipe(v.string(), v.minLength(1), v.description('User name for the broker; absent: none is sent'))),
  password: v.optional(v.pipe(secretText(), v.description('Password of that user'))),
  keep_alive_secs: v.optional(v.pipe(whole(5, 65_535), v.description('Time without a packet after which the daemon pings the broker')), 30),
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

export interface BrokerAddress {
  readonly protocol: 'mqtt' | 'mqtts'
  /** Without the brackets of an IPv6 address. */
  readonly host: string
  readonly port: number
}

const DEFAULT_PORTS = { mqtt: 1883, mqtts: 8883 } as const

/** Returns the parts of a `broker_url` that the section accepts. */
export function brokerAddress(url: string): BrokerAddress {
  const { protocol: scheme, hostname, port } = new URL(url)
  const protocol = scheme === 'mqtts:' ? 'mqtts' : 'mqtt'
  return { protocol, host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? DEFAULT_PORTS[protocol] : Number(port) }
}
