/** A person with an encrypting client, made from the crypto library that the channel also uses. Keys are kept in memory. */
import type { Sas } from '@matrix-org/matrix-sdk-crypto-wasm'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { MatrixApi } from '../api.ts'
import { loadSdk } from '../crypto/device.ts'
import type { CryptoSdk, OutgoingRequest } from '../crypto/requests.ts'
import type { FedchatFake } from './fake.ts'

type Machine = Awaited<ReturnType<CryptoSdk['OlmMachine']['initialize']>>

const NEVER = new AbortController().signal

export class Person {
  readonly machine: Machine
  readonly sdk: CryptoSdk
  readonly userId: string
  readonly #api: MatrixApi
  #since: string | undefined
  #count = 0

  private constructor(sdk: CryptoSdk, machine: Machine, api: MatrixApi, userId: string) {
    this.sdk = sdk
    this.machine = machine
    this.#api = api
    this.userId = userId
  }

  static async start(fake: FedchatFake, userId: string): Promise<Person> {
    const sdk = await loadSdk()
    const { deviceId, token } = fake.state.accounts.logIn(userId)
    const api = new MatrixApi(fetch, fake.url)
    api.token = token
    const machine = await sdk.OlmMachine.initialize(new sdk.UserId(userId), new sdk.DeviceId(deviceId))
    const person = new Person(sdk, machine, api, userId)
    await person.sync()
    return person
  }

  /** Syncs once and sends what the library asks for. Returns the events of all rooms, decrypted where possible. */
  async sync(): Promise<readonly Members[]> {
    const sync = await this.#api.client('GET', ['sync'], { query: { since: this.#since, timeout: '0' }, signal: NEVER })
    this.#since = text(sync.next_batch)
    const { DeviceLists, UserId, RoomId, DecryptionSettings, TrustRequirement } = this.sdk
    const changed = list(members(sync.device_lists).changed).map((id) => new UserId(text(id)))
    const counts = new Map(Object.entries(members(sync.device_one_time_keys_count)) as [string, number][])
    await this.machine.receiveSyncChanges(JSON.stringify(members(sync.to_device).events), new DeviceLists(changed), counts)
    await this.pump()
    const events: Members[] = []
    for (const [room, joined] of Object.entries(members(members(sync.rooms).join))) {
      for (const event of list(members(members(joined).timeline).events).map(members)) {
        if (event.type !== 'm.room.encrypted') events.push(event)
        else {
          const settings = new DecryptionSettings(TrustRequirement.Untrusted)
          const decrypted = await this.machine.decryptRoomEvent(JSON.stringify(event), new RoomId(room), settings).catch(() => undefined)
          events.push(decrypted ? members(JSON.parse(decrypted.event)) : event)
        }
      }
    }
    return events
  }

  async pump(): Promise<void> {
    const requests = (await this.machine.outgoingRequests()) as unknown as readonly OutgoingRequest[]
    for (const request of requests) await this.request(request)
  }

  /** Sends an encrypted message to a room. `withKey` false keeps its key back; `shareKey` then sends it. */
  async say(
    room: string,
    body: string,
    { content = {}, withKey = true }: { readonly content?: object; readonly withKey?: boolean } = {},
  ): Promise<string> {
    const { RoomId, UserId, EncryptionSettings } = this.sdk
    const { joined } = await this.#api.client('GET', ['rooms', room, 'joined_members'], { signal: NEVER })
    const users = () => Object.keys(members(joined)).map((id) => new UserId(id))
    await this.machine.updateTrackedUsers(users())
    await this.pump()
    const claim = await this.machine.getMissingSessions(users())
    if (claim) await this.request(claim as unknown as OutgoingRequest)
    const shares = (await this.machine.shareRoomKey(
      new RoomId(room),
      users(),
      new EncryptionSettings(),
    )) as unknown as readonly OutgoingRequest[]
    if (withKey) for (const share of shares) await this.request(share)
    else this.#kept.push(...shares)
    const encrypted = await this.machine.encryptRoomEvent(
      new RoomId(room),
      'm.room.message',
      JSON.stringify({ msgtype: 'm.text', body, ...content }),
    )
    const path = ['rooms', room, 'send', 'm.room.encrypted', `p${++this.#count}`]
    return text((await this.#api.client('PUT', path, { body: members(JSON.parse(encrypted)), signal: NEVER })).event_id)
  }

  readonly #kept: OutgoingRequest[] = []

  async shareKey(): Promise<void> {
    for (const share of this.#kept.splice(0)) await this.request(share)
  }

  async request({ id, type, body, event_type = '', txn_id = '', room_id = '' }: OutgoingRequest): Promise<void> {
    const { RequestType } = this.sdk
    const paths: Partial<Record<number, readonly ['POST' | 'PUT', ...string[]]>> = {
      [RequestType.KeysUpload]: ['POST', 'keys', 'upload'],
      [RequestType.KeysQuery]: ['POST', 'keys', 'query'],
      [RequestType.KeysClaim]: ['POST', 'keys', 'claim'],
      [RequestType.ToDevice]: ['PUT', 'sendToDevice', event_type, txn_id],
      [RequestType.SignatureUpload]: ['POST', 'keys', 'signatures', 'upload'],
      [RequestType.RoomMessage]: ['PUT', 'rooms', room_id, 'send', event_type, txn_id],
    }
    const [method = 'POST', ...path] = paths[type] ?? []
    const answer = await this.#api.client(method, path, { body: members(JSON.parse(body)), signal: NEVER })
    if (id !== undefined) await this.machine.markRequestAsSent(id, type, JSON.stringify(answer))
  }

  /** Begins to verify a device. Returns the id of the flow. */
  async verify(userId: string, deviceId: string): Promise<string> {
    const { UserId, DeviceId, VerificationMethod } = this.sdk
    const device = await this.machine.getDevice(new UserId(userId), new DeviceId(deviceId))
    if (!device) throw new Error(`The device ${deviceId} is not known`)
    const [request, message] = device.requestVerification([VerificationMethod.SasV1])
    await this.request(message as unknown as OutgoingRequest)
    return request.flowId
  }

  /** Takes the next step of a verification that this person began. */
  async advance(userId: string, flow: string): Promise<Sas | undefined> {
    await this.sync()
    const request = this.machine.getVerificationRequest(new this.sdk.UserId(userId), flow)
    if (request?.isReady()) {
      const started = await request.startSas()
      if (started) await this.request(started[1] as unknown as OutgoingRequest)
    }
    const verification = this.machine.getVerification(new this.sdk.UserId(userId), flow)
    return verification instanceof this.sdk.Sas ? verification : undefined
  }

  /** Creates the cross-signing keys of the account. Returns their seeds. */
  async createCrossSigning(fake: FedchatFake) {
    const { uploadSigningKeysRequest, uploadSignaturesRequest } = await this.machine.bootstrapCrossSigning(true)
    fake.state.accounts.user(this.userId).crossSigning = JSON.parse(uploadSigningKeysRequest.body)
    fake.state.accounts.listChanged(this.userId)
    await this.request(uploadSignaturesRequest as unknown as OutgoingRequest)
    const seeds = await this.machine.exportCrossSigningKeys()
    return { master: seeds?.masterKey ?? '', selfSigning: seeds?.self_signing_key ?? '', userSigning: seeds?.userSigningKey ?? '' }
  }
}
