/** The device of the bot: its keys and sessions, the requests that keep them up to date, and the encryption of room events. */

import type * as Sdk from '@matrix-org/matrix-sdk-crypto-wasm'
import { list, type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Logger, sha256Hex } from '@sluice/sdk'
import { type MatrixApi, refusalOf } from '../api.ts'
import type { Vault } from '../vault.ts'
import type { DatabaseShape, JournaledDatabase, RecordChange } from './indexed-db.ts'
import { Replays } from './replays.ts'
import { type CryptoSdk, encryptionSettings, endpointOf, type OutgoingRequest, type RoomEncryption } from './requests.ts'

/** The records of the crypto library in the vault. */
const RECORDS = 'olm/'
const SHAPE = 'olm-shape'
/** Requests lead to others, such as a query to a claim. More rounds would mean a fault. */
const ROUNDS_MAX = 20
const TRACKED_MAX = 10_000

export interface DeviceOptions {
  readonly api: MatrixApi
  readonly vault: Vault
  readonly log: Logger
  readonly userId: string
  readonly deviceId: string
  readonly database: JournaledDatabase
}

/** An event of a room as the homeserver sent it. */
export interface RoomEvent extends Members {
  readonly event_id: string
  readonly type: string
  readonly sender: string
}

export type Decrypted =
  | { readonly outcome: 'decrypted'; readonly event: Members }
  /** The key is missing, and may still arrive. `withheld` says why its sender does not give it. */
  | { readonly outcome: 'waiting'; readonly session: string; readonly why: string; readonly withheld?: string }
  | { readonly outcome: 'refused'; readonly why: string }

/** The private keys of cross-signing, in base64. */
export interface CrossSigningSeeds {
  readonly master: string
  readonly selfSigning: string
  readonly userSigning: string
}

/** Loads the crypto library, which is large, when the first device is opened. */
export const loadSdk = async (): Promise<CryptoSdk> => {
  const sdk = await import('@matrix-org/matrix-sdk-crypto-wasm')
  await sdk.initAsync()
  return sdk
}

export class Device {
  readonly sdk: CryptoSdk
  readonly machine: Sdk.OlmMachine
  readonly #options: DeviceOptions
  readonly #replays: Replays
  /** Rooms whose session of an earlier process was discarded. A restored backup could otherwise use a key twice. */
  readonly #renewed = new Set<string>()
  /** The users that were seen in this process; the library knows all. */
  readonly #tracked = new Set<string>()
  /** Settles when the last request for keys has ended; there is one at a time. */
  #exclusive: Promise<unknown> = Promise.resolve()
  /** Called with the ids of sessions whose keys arrived. */
  onRoomKeys: (sessions: readonly string[]) => void = () => undefined

  private constructor(sdk: CryptoSdk, machine: Sdk.OlmMachine, replays: Replays, options: DeviceOptions) {
    this.sdk = sdk
    this.machine = machine
    this.#replays = replays
    this.#options = options
  }

  /** Opens the device with the stored keys, or creates its keys. */
  static async open(options: DeviceOptions): Promise<Device> {
    const { vault, userId, deviceId, log, database } = options
    const sdk = await loadSdk()
    const shape = parsedOrUndefined((await vault.read(SHAPE)).get(SHAPE) ?? '') as DatabaseShape | undefined
    const stored = await vault.read(RECORDS)
    const records = [...stored.values()].map((value) => parsedOrUndefined(value) as RecordChange & { readonly value: string })
    await database.open(shape && { shape, records }, (changes) => {
      for (const change of changes) vault.set(recordName(change), change.value === undefined ? undefined : JSON.stringify(change))
    })
    const logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (data: unknown) => log.debug('crypto library', { detail: String(data).slice(0, 500) }),
    }
    const handle = await sdk.StoreHandle.open(database.name, undefined, logger)
    const machine = await sdk.OlmMachine.initFromStore(new sdk.UserId(userId), new sdk.DeviceId(deviceId), handle, logger)
    const opened = await database.shape()
    if (JSON.stringify(opened) !== JSON.stringify(shape)) {
      vault.put(SHAPE, opened)
      const stores = new Set(opened.stores.map(({ name: store }) => store))
      for (const record of records) if (!stores.has(record.store)) vault.set(recordName(record), undefined)
    }
    const device = new Device(sdk, machine, await Replays.load(vault), options)
    await machine.registerRoomKeyUpdatedCallback(async (keys) => device.onRoomKeys(keys.map(({ sessionId }) => sessionId)))
    await vault.flush()
    return device
  }

  /** The fingerprint that people compare: the Ed25519 key of the device, in groups of four characters. */
  get fingerprint(): string {
    return this.machine.identityKeys.ed25519.toBase64().replaceAll(/.{4}(?=.)/g, '$& ')
  }

  /** Takes the parts of a sync that concern keys (client-server API, "Extensions to /sync" of end-to-end encryption). */
  async receive(sync: Members): Promise<void> {
    const { UserId, DeviceLists } = this.sdk
    const toDevice = members(sync.to_device).events
    const { changed, left } = members(sync.device_lists)
    const ids = (value: unknown) => (Array.isArray(value) ? userIdsOf(UserId, value) : [])
    const counts = Object.entries(members(sync.device_one_time_keys_count)).filter((entry): entry is [string, number] =>
      Number.isSafeInteger(entry[1]),
    )
    const fallback = sync.device_unused_fallback_key_types
    await this.machine.receiveSyncChanges(
      `[${list(toDevice).flatMap(asJson).join()}]`,
      new DeviceLists(ids(changed), ids(left)),
      new Map(counts),
      Array.isArray(fallback) ? new Set(fallback.filter((type) => typeof type === 'string')) : undefined,
    )
  }

  /** Sends the requests that the library asks for, until it asks for none. Throws when one fails; the library repeats it. */
  runOutgoing(signal: AbortSignal): Promise<void> {
    return this.#alone(async () => {
      for (let round = 0; round < ROUNDS_MAX; round++) {
        const requests = (await this.machine.outgoingRequests()) as unknown as readonly OutgoingRequest[]
        for (const request of requests) await this.sendRequest(request, signal)
        const claim = requests.length === 0 ? await this.machine.getMissingSessions([]) : undefined
        if (claim) await this.sendRequest(claim as unknown as OutgoingRequest, signal)
        else if (requests.length === 0) return
      }
    })
  }

  /** Returns the encrypted content of an event, whose key the devices of `users` have then got. Durable before it resolves. */
  async encrypt(
    room: string,
    { type, content }: { readonly type: string; readonly content: object },
    users: readonly string[],
    encryption: RoomEncryption,
    signal: AbortSignal,
  ): Promise<Members> {
    return this.#alone(async () => {
      const { RoomId, UserId } = this.sdk
      const recipients = () => userIdsOf(UserId, users)
      if (!this.#renewed.has(room)) await this.machine.invalidateGroupSession(new RoomId(room))
      this.#renewed.add(room)
      await this.machine.updateTrackedUsers(recipients())
      for (const request of (await this.machine.outgoingRequests()) as unknown as readonly OutgoingRequest[]) {
        if (request.type === this.sdk.RequestType.KeysQuery) await this.sendRequest(request, signal)
      }
      const claim = await this.machine.getMissingSessions(recipients())
      if (claim) await this.sendRequest(claim as unknown as OutgoingRequest, signal)
      const shares = await this.machine.shareRoomKey(new RoomId(room), recipients(), encryptionSettings(this.sdk, encryption))
      for (const share of shares) await this.sendRequest(share as unknown as OutgoingRequest, signal)
      const encrypted = await this.machine.encryptRoomEvent(new RoomId(room), type, JSON.stringify(content))
      await this.#options.vault.flush()
      return members(JSON.parse(encrypted))
    })
  }

  async decrypt(event: RoomEvent, room: string): Promise<Decrypted> {
    const { RoomId, DecryptionSettings, DecryptionErrorCode, TrustRequirement, MegolmDecryptionError, ShieldStateCode } = this.sdk
    const { session_id: session, ciphertext } = members(event.content)
    try {
      const settings = new DecryptionSettings(TrustRequirement.Untrusted)
      const decrypted = await this.machine.decryptRoomEvent(JSON.stringify(event), new RoomId(room), settings)
      if (decrypted.shieldState(false).code === ShieldStateCode.MismatchedSender) {
        return { outcome: 'refused', why: 'its key is of another user than its sender' }
      }
      if (!this.#replays.isFirst(text(session), text(ciphertext), event.event_id)) {
        return { outcome: 'refused', why: 'it repeats the ciphertext of another message' }
      }
      return { outcome: 'decrypted', event: { ...event, ...members(JSON.parse(decrypted.event)) } }
    } catch (error) {
      if (!(error instanceof MegolmDecryptionError)) return { outcome: 'refused', why: 'it is not a valid encrypted event' }
      const { code, description, maybe_withheld: withheld } = error
      const isWaiting = code === DecryptionErrorCode.MissingRoomKey || code === DecryptionErrorCode.UnknownMessageIndex
      return isWaiting
        ? { outcome: 'waiting', session: text(session), why: description, ...(withheld !== undefined && { withheld }) }
        : { outcome: 'refused', why: description }
    }
  }

  /** Sends one request of the library and reports its answer. The keys that it uses are durable before. */
  async sendRequest(request: OutgoingRequest, signal: AbortSignal): Promise<void> {
    const { vault, api, userId, deviceId } = this.#options
    await vault.flush()
    const { RequestType } = this.sdk
    const { type, id, body } = request
    let answer: Members
    try {
      answer = await api.call({ ...endpointOf(this.sdk, request), body: JSON.parse(body), signal })
    } catch (error) {
      if (type === RequestType.KeysUpload && /already exists/i.test(refusalOf(error)?.text ?? '')) {
        throw new AppError(
          'forbidden',
          `Another program uses the device ${deviceId} of ${userId}, or its keys are those of an old backup: the homeserver refuses its one-time keys. Log the bot in again, so that it gets a device of its own.`,
        )
      }
      throw error
    }
    if (id !== undefined) await this.machine.markRequestAsSent(id, type, JSON.stringify(answer))
  }

  #alone<Result>(task: () => Promise<Result>): Promise<Result> {
    const run = this.#exclusive.then(task, task)
    this.#exclusive = run.catch(() => undefined)
    return run
  }

  /** Whether the account has signed the device. */
  async isVerified(): Promise<boolean> {
    const { userId, deviceId } = this.#options
    const own = await this.machine.getDevice(new this.sdk.UserId(userId), new this.sdk.DeviceId(deviceId))
    return own?.isCrossSignedByOwner() === true
  }

  /** Imports the keys of the account and signs the device with them. Throws `config_invalid` if they belong to another account. */
  async importCrossSigning({ master, selfSigning, userSigning }: CrossSigningSeeds, signal: AbortSignal): Promise<void> {
    const { userId, deviceId } = this.#options
    const { UserId, DeviceId } = this.sdk
    // The library compares the keys with the public ones of the account.
    await this.machine.updateTrackedUsers([new UserId(userId)])
    await this.runOutgoing(signal)
    const status = await this.machine.importCrossSigningKeys(master, selfSigning, userSigning)
    if (!status.hasSelfSigning) throw new AppError('config_invalid', 'The stored cross-signing keys are not those of the account')
    const own = await this.machine.getDevice(new UserId(userId), new DeviceId(deviceId))
    if (!own) throw new AppError('upstream', 'The homeserver does not list the device of the bot')
    await this.sendRequest((await own.verify()) as unknown as OutgoingRequest, signal)
    // The answer to this query shows the signature.
    const query = this.machine.queryKeysForUsers([new UserId(userId)])
    await this.sendRequest(query as unknown as OutgoingRequest, signal)
  }

  /**
   * Creates the cross-signing keys of an account that has none, and signs the device with them. `upload` sends the public keys, for which
   * the homeserver wants the password again. Resolves to false for an account that has keys, which only their owner can use.
   */
  async createCrossSigning(upload: (keys: Members) => Promise<void>, signal: AbortSignal): Promise<boolean> {
    const own = () => [new this.sdk.UserId(this.#options.userId)]
    const query = async () => this.sendRequest(this.machine.queryKeysForUsers(own()) as unknown as OutgoingRequest, signal)
    await query()
    const [user] = own()
    if (!user || (await this.machine.getIdentity(user)) !== undefined) return false
    // A start that a crash cut short has stored the private keys, which are used again.
    const requests = await this.machine.bootstrapCrossSigning(false)
    if (requests.uploadKeysRequest) await this.sendRequest(requests.uploadKeysRequest as OutgoingRequest, signal)
    await this.#options.vault.flush()
    await upload(members(JSON.parse(requests.uploadSigningKeysRequest.body)))
    await this.sendRequest(requests.uploadSignaturesRequest as unknown as OutgoingRequest, signal)
    // The answer to this query shows the signature.
    await query()
    return true
  }

  /** Keeps the list of the devices of a user up to date from now on. Messages for a verification are accepted only from known devices. */
  async track(userId: string): Promise<void> {
    if (this.#tracked.has(userId) || !isUserId(userId)) return
    this.#tracked.add(userId)
    const [oldest] = this.#tracked
    if (oldest !== undefined && this.#tracked.size > TRACKED_MAX) this.#tracked.delete(oldest)
    await this.machine.updateTrackedUsers([new this.sdk.UserId(userId)])
  }

  takeVerificationEvent(event: Members, room: string): Promise<void> {
    return this.machine.receiveVerificationEvent(JSON.stringify(event), new this.sdk.RoomId(room))
  }

  verificationRequest(userId: string, flow: string): Sdk.VerificationRequest | undefined {
    return this.machine.getVerificationRequest(new this.sdk.UserId(userId), flow)
  }

  verification(userId: string, flow: string): Sdk.Sas | Sdk.Qr | undefined {
    return isUserId(userId) ? this.machine.getVerification(new this.sdk.UserId(userId), flow) : undefined
  }

  /** Ends the use of the device once no request for keys is under way. */
  async close(): Promise<void> {
    await this.#exclusive
    this.machine.close()
  }
}

/** Leaves out an event that is nested too deep to be written: any user can send one, and every later sync would contain it. */
function asJson(event: unknown): string[] {
  try {
    return [JSON.stringify(event)]
  } catch {
    return []
  }
}

/** The name of a record shows neither users nor rooms, because names are not encrypted. */
const recordName = ({ store, key }: RecordChange): string => `${RECORDS}${sha256Hex(`${store}\0${key}`).slice(0, 32)}`

const isUserId = (value: unknown): value is string => typeof value === 'string' && /^@[^:]*:.+$/.test(value)

/** Returns the ids that the library accepts. Another homeserver can invite an impossible user to a room. */
function userIdsOf(UserId: CryptoSdk['UserId'], ids: readonly unknown[]): Sdk.UserId[] {
  return ids.filter(isUserId).flatMap((id) => {
    try {
      return [new UserId(id)]
    } catch {
      return []
    }
  })
}
