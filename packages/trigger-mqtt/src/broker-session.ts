/** Whose session the broker keeps for us: under which client id, and what we remember of it. */
import { randomUUID } from 'node:crypto'
import type { KeyValue } from '@sluice/sdk'
import type { EventKeys } from './event-keys.ts'
import { forgetSubscriptions } from './subscriptions.ts'

export interface BrokerSession {
  /** The client id to connect with. What is remembered of another broker, or under another id, is forgotten. */
  open(broker: string, configured: string | undefined): Promise<string>
  /** The broker remembers nothing, so neither do we. */
  forget(): Promise<void>
}

const CLIENT_ID = 'client_id'
const SESSION = 'session'

export function createBrokerSession(keyValue: KeyValue, keys: Pick<EventKeys, 'forgetAll'>): BrokerSession {
  /** Made once, and the same after every restart. */
  const ownClientId = async (): Promise<string> => {
    const kept = await keyValue.get(CLIENT_ID)
    if (typeof kept === 'string') return kept
    const made = `sluice-${randomUUID()}`
    await keyValue.set(CLIENT_ID, made)
    return made
  }
  const forget = async (): Promise<void> => {
    await Promise.all([keys.forgetAll(), forgetSubscriptions(keyValue)])
  }
  return {
    async open(broker, configured) {
      const clientId = configured ?? (await ownClientId())
      const session = `${clientId}@${broker}`
      if ((await keyValue.get(SESSION)) === session) return clientId
      await forget()
      await keyValue.set(SESSION, session)
      return clientId
    },
    forget,
  }
}
