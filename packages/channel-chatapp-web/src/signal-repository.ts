/**
 * Makes the encryption of the library durable. A received message is stored in the same commit that advances its keys, before the
 * platform gets its acknowledgement: its keys decrypt it only once. A key that encrypts a message is stored before the message leaves,
 * because the library sends inside of a transaction that it commits afterwards.
 */
import { AsyncResource } from 'node:async_hooks'
import type { BinaryNode, SocketConfig } from '@whiskeysockets/baileys'
import type { DeviceState, Received } from './device-state.ts'
import type { Library } from './library.ts'
import { isSignedBy } from './xeddsa.ts'

type MakeRepository = SocketConfig['makeSignalRepository']
type TransactionalKeys = { transaction<Result>(work: () => Promise<Result>, key: string): Promise<Result> } & DeviceState['keys']

export interface RepositoryOptions {
  readonly library: Library
  readonly state: DeviceState
  /** Returns the stanza that contains an encrypted content, and the name of its message. */
  arrivalOf(content: Uint8Array): { readonly stanza: BinaryNode; readonly name: string } | undefined
  /** Called when a content is durable, or cannot be decrypted. */
  onDone(stanza: BinaryNode): void
}

export function durableRepository({ library, state, arrivalOf, onDone }: RepositoryOptions): MakeRepository {
  return (auth, logger, lookUp) => {
    const base = library.DEFAULT_CONNECTION_CONFIG.makeSignalRepository(auth, logger, lookUp)
    const keys = auth.keys as TransactionalKeys
    /** Runs work in its own transaction, whichever one the caller is in. */
    const outside = new AsyncResource('chatapp-web')
    const apart =
      <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
      (...args: Args): Promise<Result> =>
        outside.runInAsyncScope(work, undefined, ...args)

    const keeping = async (lock: string, content: Uint8Array, decrypt: () => Promise<Uint8Array>): Promise<Uint8Array> => {
      const arrival = arrivalOf(content)
      try {
        return await keys.transaction(async () => {
          const decrypted = await decrypt()
          const message = arrival && receivedOf(library, state, arrival.stanza, decrypted)
          if (message) await keys.set(state.keeping(arrival.name, message))
          return decrypted
        }, lock)
      } finally {
        if (arrival) onDone(arrival.stanza)
      }
    }

    return {
      ...base,
      decryptMessage: (message) => keeping(message.jid, message.ciphertext, () => base.decryptMessage(message)),
      decryptGroupMessage: (message) => keeping(message.group, message.msg, () => base.decryptGroupMessage(message)),
      encryptMessage: apart(base.encryptMessage),
      encryptGroupMessage: apart(base.encryptGroupMessage),
      getSenderKeyDistributionMessage: apart(base.getSenderKeyDistributionMessage),
      injectE2ESession: apart(async (bundle) => {
        const { identityKey, signedPreKey } = bundle.session
        if (!isSignedBy(identityKey, signedPreKey.publicKey, signedPreKey.signature))
          throw new Error('the keys of a device are not signed by it')
        await base.injectE2ESession(bundle)
      }),
      deleteSession: apart(base.deleteSession),
      migrateSession: apart(base.migrateSession),
    }
  }
}

/** Returns undefined for messages between the account's own devices, such as the history of chats. */
function receivedOf(library: Library, { creds }: DeviceState, stanza: BinaryNode, padded: Uint8Array): Received | undefined {
  if (stanza.attrs.category === 'peer') return undefined
  const { fullMessage } = library.decodeMessageNode(stanza, creds.me?.id ?? '', creds.me?.lid ?? '')
  const { key, messageTimestamp, pushName } = fullMessage
  const content = Buffer.from(library.unpadRandomMax16(padded)).toString('base64')
  const { edit } = stanza.attrs
  return { key, atSecs: library.toNumber(messageTimestamp), content, ...(pushName && { pushName }), ...(edit !== undefined && { edit }) }
}
