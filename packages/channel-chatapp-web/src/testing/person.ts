/** A person's phone: encrypts and decrypts with the Signal implementation of the library, with keys of its own in memory. */
import {
  addTransactionCapability,
  type BinaryNode,
  Curve,
  DEFAULT_CONNECTION_CONFIG,
  encodeBigEndian,
  encodeWAMessage,
  generateSignalPubKey,
  initAuthCreds,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
  type SignalKeyStore,
  type SocketConfig,
  unpadRandomMax16,
} from '@whiskeysockets/baileys'

const logger: SocketConfig['logger'] = {
  level: 'silent',
  child: () => logger,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** The public keys with which others begin a session with a device. */
export interface Bundle {
  readonly registrationId: number
  readonly identity: Uint8Array
  readonly signedPreKey: { readonly keyId: number; readonly publicKey: Uint8Array; readonly signature: Uint8Array }
  /** Each is given to one device only. */
  readonly preKeys: { readonly keyId: number; readonly publicKey: Uint8Array }[]
}

/** The stanza that answers a request for the keys of a device. */
export function bundleNode(jid: string, bundle: Bundle): BinaryNode {
  const { registrationId, identity, signedPreKey, preKeys } = bundle
  const preKey = preKeys.shift()
  const key = (tag: string, id: number, value: Uint8Array, signature?: Uint8Array): BinaryNode => ({
    tag,
    attrs: {},
    content: [
      { tag: 'id', attrs: {}, content: encodeBigEndian(id, 3) },
      { tag: 'value', attrs: {}, content: value },
      ...(signature ? [{ tag: 'signature', attrs: {}, content: signature }] : []),
    ],
  })
  return {
    tag: 'user',
    attrs: { jid },
    content: [
      { tag: 'registration', attrs: {}, content: encodeBigEndian(registrationId) },
      { tag: 'type', attrs: {}, content: new Uint8Array([5]) },
      { tag: 'identity', attrs: {}, content: identity },
      key('skey', signedPreKey.keyId, signedPreKey.publicKey, signedPreKey.signature),
      ...(preKey ? [key('key', preKey.keyId, preKey.publicKey)] : []),
    ],
  }
}

function memoryKeys(): SignalKeyStore {
  const kept = new Map<string, unknown>()
  return {
    get<Type extends keyof SignalDataTypeMap>(type: Type, ids: string[]) {
      const found: { [id: string]: SignalDataTypeMap[Type] } = {}
      for (const id of ids) {
        const value = kept.get(`${type}/${id}`)
        if (value !== undefined) found[id] = value as SignalDataTypeMap[Type]
      }
      return found
    },
    set(data: SignalDataSet) {
      for (const [type, values] of Object.entries(data))
        for (const [id, value] of Object.entries(values ?? {})) {
          if (value === null || value === undefined) kept.delete(`${type}/${id}`)
          else kept.set(`${type}/${id}`, value)
        }
    },
  }
}

/** Encrypted content, as in `enc` stanzas. */
export interface Encrypted {
  readonly type: string
  readonly ciphertext: Uint8Array
}

export class Person {
  readonly number: string
  readonly jid: string
  readonly lid: string
  readonly bundle: Bundle
  readonly #repository: ReturnType<SocketConfig['makeSignalRepository']>
  /** Whether there is a session with the bot, and which groups have told the bot their key. */
  readonly #hasSession = new Set<string>()
  readonly #knownGroups = new Set<string>()
  /** One step of the phone at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(number: string) {
    this.number = number
    this.jid = `${number}@s.whatsapp.net`
    this.lid = `19${number.slice(-10)}@lid`
    const creds = initAuthCreds()
    const keys = addTransactionCapability(memoryKeys(), logger, { maxCommitRetries: 1, delayBetweenTriesMs: 1 })
    this.#repository = DEFAULT_CONNECTION_CONFIG.makeSignalRepository({ creds, keys }, logger, async () => undefined)
    const preKeys = Array.from({ length: 30 }, (_, index) => ({ keyId: index + 1, pair: Curve.generateKeyPair() }))
    void keys.set({ 'pre-key': Object.fromEntries(preKeys.map(({ keyId, pair }) => [String(keyId), pair])) })
    this.bundle = {
      registrationId: creds.registrationId,
      identity: creds.signedIdentityKey.public,
      signedPreKey: {
        keyId: creds.signedPreKey.keyId,
        publicKey: creds.signedPreKey.keyPair.public,
        signature: creds.signedPreKey.signature,
      },
      preKeys: preKeys.map(({ keyId, pair }) => ({ keyId, publicKey: pair.public })),
    }
  }

  /** Forgets all sessions. */
  forget(): void {
    for (const jid of this.#hasSession) void this.inOrder(() => this.#repository.deleteSession([jid]))
    this.#hasSession.clear()
  }

  /** Runs a step after those before. */
  inOrder<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(step, step)
    this.#last = result.catch(() => undefined)
    return result
  }

  async encrypt(to: string, bundle: Bundle, message: proto.IMessage, isFresh = false): Promise<Encrypted> {
    if (isFresh || !this.#hasSession.has(to)) {
      const { registrationId, identity, signedPreKey, preKeys } = bundle
      const preKey = preKeys.shift()
      const session = {
        registrationId,
        identityKey: generateSignalPubKey(Buffer.from(identity)),
        signedPreKey: { ...signedPreKey, publicKey: generateSignalPubKey(Buffer.from(signedPreKey.publicKey)) },
        ...(preKey && { preKey: { keyId: preKey.keyId, publicKey: generateSignalPubKey(Buffer.from(preKey.publicKey)) } }),
      }
      await this.#repository.injectE2ESession({ jid: to, session })
      this.#hasSession.add(to)
    }
    return this.#repository.encryptMessage({ jid: to, data: encodeWAMessage(message) })
  }

  /** Encrypts for a group. The first message brings the key of the group along, encrypted for the device. */
  async encryptForGroup(group: string, to: string, bundle: Bundle, message: proto.IMessage): Promise<Encrypted[]> {
    const { ciphertext, senderKeyDistributionMessage } = await this.#repository.encryptGroupMessage({
      group,
      meId: this.jid,
      data: encodeWAMessage(message),
    })
    const content: Encrypted = { type: 'skmsg', ciphertext }
    if (this.#knownGroups.has(group)) return [content]
    this.#knownGroups.add(group)
    const key: proto.IMessage = {
      senderKeyDistributionMessage: { groupId: group, axolotlSenderKeyDistributionMessage: senderKeyDistributionMessage },
    }
    return [await this.encrypt(to, bundle, key), content]
  }

  async decrypt(from: string, { type, ciphertext }: Encrypted): Promise<proto.Message> {
    const data = await this.#repository.decryptMessage({ jid: from, type: type as 'pkmsg' | 'msg', ciphertext })
    this.#hasSession.add(from)
    return proto.Message.decode(unpadRandomMax16(data))
  }

  async decryptForGroup(group: string, from: string, ciphertext: Uint8Array): Promise<proto.Message> {
    return proto.Message.decode(unpadRandomMax16(await this.#repository.decryptGroupMessage({ group, authorJid: from, msg: ciphertext })))
  }

  learnGroupKey(from: string, item: proto.Message.ISenderKeyDistributionMessage): Promise<void> {
    return this.#repository.processSenderKeyDistributionMessage({
      authorJid: from,
      item: item as proto.Message.SenderKeyDistributionMessage,
    })
  }
}
