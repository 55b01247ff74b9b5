/** The trigger at work: from the engine's appearance to the feature's end, in the background. */
import type { Host, LinkHealth, Parts, Sops } from '@sluice/sdk'
import { createBrokerSession } from './broker-session.ts'
import { brokerAddress } from './broker-url.ts'
import type { MqttConfig } from './config.ts'
import { holdConnection } from './connection.ts'
import { createEventKeys } from './event-keys.ts'
import { keepConnected } from './keep-connected.ts'
import { createReceive } from './receive.ts'

/** How often the engine is looked for, which may be ready after us. */
const ENGINE_LOOK_MS = 250

export function createTrigger(host: Host, config: MqttConfig): Pick<Parts, 'register' | 'close' | 'links'> {
  const leaving = new AbortController()
  let running: Promise<void> | undefined
  const link: Link = { state: 'connecting' }
  return {
    links: () => [{ name: 'mqtt', state: link.state }],
    async register() {
      running ??= run(host, config, link, leaving.signal)
    },
    async close() {
      leaving.abort()
      await running
    },
  }
}

/** What is known of the connection. */
interface Link {
  state: LinkHealth['state']
}

async function run(host: Host, config: MqttConfig, link: Link, leaving: AbortSignal): Promise<void> {
  const sops = await waitForEngine(host, leaving)
  if (!sops) return
  const { log, keyValue, clock } = host
  const { broker_url = '', client_id, username, password, qos } = config
  const address = brokerAddress(broker_url)
  const broker = `${address.host}:${address.port}`
  const keys = createEventKeys(keyValue)
  const session = createBrokerSession(keyValue, keys)
  const wanted = () => (config.topics.length > 0 ? config.topics : sops.topics('mqtt'))

  const connect = async () => {
    const clientId = await session.open(broker, client_id)
    return holdConnection(
      {
        address,
        clientId,
        credentials: { ...(username !== undefined && { username }), ...(password && { password: password.reveal() }) },
        keepAliveSecs: config.keep_alive_secs,
      },
      {
        clock,
        log,
        keys,
        receive: createReceive(host, sops, keys),
        subscriptions: { keyValue, log, qos, wanted },
        onNewSession: () => session.forget(),
        onConnected(resumed) {
          link.state = 'ok'
          log.info('connected to the MQTT broker', { broker, session: resumed ? 'resumed' : 'new' })
        },
        onReload: (callback) => sops.onReload(callback),
      },
      leaving,
    )
  }
  const connectOrDown = () =>
    connect().finally(() => {
      link.state = 'down'
    })
  await keepConnected(host, broker, connectOrDown, leaving)
}

async function waitForEngine(host: Host, leaving: AbortSignal): Promise<Sops | undefined> {
  while (!leaving.aborted) {
    const sops = host.service('sops')
    if (sops) return sops
    await host.clock.sleep(ENGINE_LOOK_MS, leaving)
  }
  return undefined
}
