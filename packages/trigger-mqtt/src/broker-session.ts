/** The session that the broker keeps for the daemon: its client id, and the records that are valid only within it. */
import { randomUUID } from 'node:crypto'
import type { KeyValue } from '@sluice/sdk'
import { EventKeys } from './event-keys.ts'
import { forgetSubscriptions, hasSubscriptions } from './subscriptions.ts'

const CLIENT_ID = 'client_id'
const SESSION = 'session'

export class BrokerSession {
  readonly keys: EventKeys
  readonly #keyValue: KeyValue

  constructor(keyValue: KeyValue) {
    this.#keyValue = keyValue
    this.keys = new EventKeys(keyValue)
  }

  /** Returns the client id for a connection. Deletes the records of another broker or another client id. */
  async open(broker: string, configuredId: string | undefined): Promise<string> {
    const clientId = configuredId ?? (await this.#ownClientId())
    const session = `${clientId}@${broker}`
    if ((await this.#keyValue.get(SESSION)) === session) return clientId
    await this.forget()
    await this.#keyValue.set(SESSION, session)
    return clientId
  }

  /** Whether the broker had subscriptions for the session when it was last connected, so that it keeps messages for it. */
  hasSubscriptions(): Promise<boolean> {
    return hasSubscriptions(this.#keyValue)
  }

  /** Deletes all records, because the broker has a new session without them. */
  async forget(): Promise<void> {
    await Promise.all([this.keys.forgetAll(), forgetSubscriptions(this.#keyValue)])
  }

  /** Returns a random id that stays the same across restarts. */
  async #ownClientId(): Promise<string> {
    const stored = await this.#keyValue.get(CLIENT_ID)
    if (typeof stored === 'string') return stored
    const clientId = `sluice-${randomUUID()}`
    await this.#keyValue.set(CLIENT_ID, clientId)
    return clientId
  }
}
