/**
 * The durable state of the linked device in the encrypted store: its credentials, the keys and sessions of the protocol, messages that
 * were decrypted and not delivered yet, and the last messages that it sent. Each change is one commit.
 */
import { BoundedMap } from '@sluice/kit'
import { AppError, type Clock, type SecretStore } from '@sluice/sdk'
import type { AuthenticationCreds, proto, SignalDataSet, SignalDataTypeMap, SignalKeyStore } from '@whiskeysockets/baileys'
import type { FoundSession } from './import-session.ts'
import type { Library } from './library.ts'

/** A message that was decrypted: its envelope as the library reads it, and its content in the encoding of the platform. */
export interface Received {
  readonly key: proto.IMessageKey & { readonly remoteJidAlt?: string; readonly participantAlt?: string }
  readonly atSecs: number
  /** The name that the author has chosen. */
  readonly pushName?: string
  /** The attribute `edit` of the stanza. */
  readonly edit?: string
  /** The content in base64. */
  readonly content: string
}

/** Received messages that are read at once. */
const BATCH_MAX = 100
/** Sent messages that are encrypted again for a device that could not read them. */
const SENT_MAX = 200
const SENT_BYTES_MAX = 64 * 1024
const CREDS = 'creds'
const RECEIVED = 'received/'
const SENT = 'sent/'
/** More records mean a fault. */
const RECORDS_MAX = 1_000_000

/** The type under which a received message is part of a change of keys. */
const RECEIVED_TYPE = 'received'

export class DeviceState {
  readonly creds: AuthenticationCreds
  readonly keys: SignalKeyStore
  readonly #library: Library
  readonly #secrets: SecretStore
  readonly #clock: Clock
  readonly #prefix: string
  readonly #mayWrite: () => boolean
  readonly #sent: BoundedMap<string, string>
  /** Numbers received messages of one millisecond. */
  #received = 0
  #credsAreNew = false
  #isErased = false

  private constructor(options: StateOptions, creds: AuthenticationCreds, sent: BoundedMap<string, string>) {
    this.#library = options.library
    this.#secrets = options.secrets
    this.#clock = options.clock
    this.#prefix = options.prefix
    this.#mayWrite = options.mayWrite ?? (() => true)
    this.#sent = sent
    this.creds = creds
    this.keys = { get: (type, ids) => this.#get(type, ids), set: (changes) => this.#set(changes) }
  }

  static async open(options: StateOptions): Promise<DeviceState> {
    const { library, secrets, prefix } = options
    const stored = await secrets.get(`${prefix}${CREDS}`)
    const creds = stored === undefined ? library.initAuthCreds() : (JSON.parse(stored, library.BufferJSON.reviver) as AuthenticationCreds)
    const sent = new BoundedMap<string, string>(SENT_MAX)
    for (const { name, value } of await secrets.list(`${prefix}${SENT}`, SENT_MAX)) sent.set(name.slice(prefix.length + SENT.length), value)
    return new DeviceState(options, creds, sent)
  }

  /** Whether a phone has confirmed the device. */
  get isLinked(): boolean {
    return !this.#isErased && this.creds.account !== undefined && this.creds.me !== undefined
  }

  /** Stores the credentials. They are also a part of every change of keys that comes meanwhile. */
  saveCreds(): Promise<void> {
    this.#credsAreNew = true
    return this.#write(new Map())
  }

  /** Takes over the keys of a device that another program has linked, in one commit. */
  async adopt({ creds, keys }: FoundSession): Promise<void> {
    Object.assign(this.creds, creds)
    this.#credsAreNew = true
    await this.keys.set(keys)
  }

  /** Returns the name of a message that arrives now. It sorts after the names of earlier messages. */
  nextName(): string {
    return `${String(this.#clock.nowMs()).padStart(15, '0')}-${String(this.#received++).padStart(9, '0')}`
  }

  /** Returns the change of keys that keeps a received message until `forget`. */
  keeping(name: string, message: Received): SignalDataSet {
    return { [RECEIVED_TYPE]: { [name]: message } } as SignalDataSet
  }

  /** Returns received messages in their order, with their names. */
  async received(): Promise<readonly (Received & { readonly name: string })[]> {
    const prefix = `${this.#prefix}${RECEIVED}`
    const rows = await this.#secrets.list(prefix, BATCH_MAX)
    return rows.map(({ name, value }) => ({ ...(JSON.parse(value) as Received), name: name.slice(prefix.length) }))
  }

  forget(names: readonly string[]): Promise<void> {
    return this.#secrets.setAll(new Map(names.map((name) => [`${this.#prefix}${RECEIVED}${name}`, undefined])))
  }

  /** Keeps a message that is about to be sent, because a device that cannot read it asks for it again. */
  async keepSent(id: string, message: proto.IMessage): Promise<void> {
    const bytes = this.#library.proto.Message.encode(message).finish()
    if (bytes.length > SENT_BYTES_MAX || this.#sent.has(id)) return
    const text = Buffer.from(bytes).toString('base64')
    const dropped = this.#sent.set(id, text)
    const changes = new Map<string, string | undefined>([[`${this.#prefix}${SENT}${id}`, text]])
    if (dropped !== undefined) changes.set(`${this.#prefix}${SENT}${dropped}`, undefined)
    await this.#write(changes)
  }

  sent(id: string): proto.IMessage | undefined {
    const text = this.#sent.get(id)
    return text === undefined ? undefined : this.#library.proto.Message.decode(Buffer.from(text, 'base64'))
  }

  /** Returns the number that belongs to the user of a hidden id, if the platform has told it. */
  async numberOf(lidUser: string): Promise<string | undefined> {
    const name = `${lidUser}_reverse`
    const found = (await this.#get('lid-mapping', [name]))[name]
    return typeof found === 'string' && /^\d+$/.test(found) ? found : undefined
  }

  /** Deletes everything, after the phone has removed the device. Received messages stay until they are delivered. */
  async erase(): Promise<void> {
    this.#isErased = true
    const rows = await this.#secrets.list(this.#prefix, RECORDS_MAX)
    const kept = `${this.#prefix}${RECEIVED}`
    await this.#secrets.setAll(new Map(rows.flatMap(({ name }) => (name.startsWith(kept) ? [] : [[name, undefined] as const]))))
  }

  async #get<Type extends keyof SignalDataTypeMap>(type: Type, ids: readonly string[]): Promise<{ [id: string]: SignalDataTypeMap[Type] }> {
    const found: { [id: string]: SignalDataTypeMap[Type] } = {}
    await Promise.all(
      ids.map(async (id) => {
        const stored = await this.#secrets.get(this.#keyName(type, id))
        if (stored !== undefined) found[id] = this.#revive(type, stored)
      }),
    )
    return found
  }

  #revive<Type extends keyof SignalDataTypeMap>(type: Type, stored: string): SignalDataTypeMap[Type] {
    const value: unknown = JSON.parse(stored, this.#library.BufferJSON.reviver)
    const isSyncKey = type === 'app-state-sync-key'
    return (isSyncKey ? this.#library.proto.Message.AppStateSyncKeyData.fromObject(value as object) : value) as SignalDataTypeMap[Type]
  }

  #set(data: SignalDataSet): Promise<void> {
    const changes = new Map<string, string | undefined>()
    for (const [type, values] of Object.entries(data))
      for (const [id, value] of Object.entries(values ?? {}))
        changes.set(this.#keyName(type, id), value === null || value === undefined ? undefined : this.#textOf(value))
    return this.#write(changes)
  }

  #keyName(type: string, id: string): string {
    return `${this.#prefix}${type === RECEIVED_TYPE ? RECEIVED : `key/${type}/`}${id}`
  }

  #textOf(value: unknown): string {
    return JSON.stringify(value, this.#library.BufferJSON.replacer)
  }

  async #write(changes: Map<string, string | undefined>): Promise<void> {
    if (this.#isErased || !this.#mayWrite()) throw new AppError('unavailable', 'This process does not hold the device any more')
    const hasCreds = this.#credsAreNew
    if (hasCreds) changes.set(`${this.#prefix}${CREDS}`, this.#textOf(this.creds))
    if (changes.size === 0) return
    this.#credsAreNew = false
    try {
      await this.#secrets.setAll(changes)
    } catch (error) {
      this.#credsAreNew ||= hasCreds
      throw error
    }
  }
}

export interface StateOptions {
  readonly library: Library
  readonly secrets: SecretStore
  readonly clock: Clock
  /** Begins the names of all records of the device. */
  readonly prefix: string
  /** Returns false once another process may hold the device. */
  readonly mayWrite?: () => boolean
}
