/** Users of the fake homeserver, their devices, and the keys and messages of devices (client-server API, "End-to-end encryption"). */

export type Json = Readonly<Record<string, unknown>>

/** The standard error of a homeserver. */
export class Refused extends Error {
  readonly status: number
  readonly body: Json

  constructor(status: number, errcode: string, error: string, more: Json = {}) {
    super(errcode)
    this.status = status
    this.body = { errcode, error, ...more }
  }
}

export interface FakeDevice {
  readonly userId: string
  readonly deviceId: string
  token: string
  keys: Json | undefined
  /** One-time keys that no client has claimed. */
  readonly oneTimeKeys: Map<string, unknown>
  /** All keys that were ever uploaded, which must not be uploaded again with another value. */
  readonly uploaded: Map<string, string>
  readonly fallbackKeys: Map<string, { readonly key: string; readonly value: unknown; isUsed: boolean }>
  /** Messages to the device that it has not confirmed by its next sync. */
  inbox: { readonly seq: number; readonly event: Json }[]
}

export interface FakeUser {
  readonly userId: string
  readonly password: string
  name: string
  readonly devices: Map<string, FakeDevice>
  readonly accountData: Map<string, Json>
  crossSigning: { master_key?: Json; self_signing_key?: Json; user_signing_key?: Json }
}

export class FakeAccounts {
  readonly users = new Map<string, FakeUser>()
  /** The devices whose lists changed, by the number of the change. */
  readonly listChanges: { readonly seq: number; readonly userId: string }[] = []
  readonly #tokens = new Map<string, FakeDevice>()
  /** Tokens that have become invalid, and whether the device still exists. */
  readonly #ended = new Map<string, { readonly isSoft: boolean }>()
  readonly #nextSeq: () => number
  #count = 0

  constructor(nextSeq: () => number) {
    this.#nextSeq = nextSeq
  }

  add(userId: string, password: string): FakeUser {
    const user: FakeUser = {
      userId,
      password,
      name: userId.slice(1).split(':')[0] ?? '',
      devices: new Map(),
      accountData: new Map(),
      crossSigning: {},
    }
    this.users.set(userId, user)
    return user
  }

  user(userId: string): FakeUser {
    const user = this.users.get(userId)
    if (!user) throw new Refused(404, 'M_NOT_FOUND', 'Unknown user')
    return user
  }

  /** A login with the id of a known device replaces its token and keeps its keys. */
  logIn(userId: string, deviceId = `DEV${++this.#count}`, token = `token-${userId}-${deviceId}-${++this.#count}`): FakeDevice {
    const { devices } = this.user(userId)
    const known = devices.get(deviceId)
    if (known) this.#tokens.delete(known.token)
    const device = known ?? {
      userId,
      deviceId,
      token,
      keys: undefined,
      oneTimeKeys: new Map(),
      uploaded: new Map(),
      fallbackKeys: new Map(),
      inbox: [],
    }
    device.token = token
    devices.set(deviceId, device)
    this.#tokens.set(token, device)
    return device
  }

  /** Ends a token. Unless it is soft, the device and its keys are deleted. */
  logOut(device: FakeDevice, isSoft: boolean): void {
    this.#tokens.delete(device.token)
    this.#ended.set(device.token, { isSoft })
    if (isSoft) return
    this.users.get(device.userId)?.devices.delete(device.deviceId)
    this.listChanged(device.userId)
  }

  /** Throws as section "Using access tokens" says. */
  deviceOf(authorization: string | null): FakeDevice {
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1]
    if (token === undefined) throw new Refused(401, 'M_MISSING_TOKEN', 'Missing access token')
    const device = this.#tokens.get(token)
    if (!device) {
      throw new Refused(401, 'M_UNKNOWN_TOKEN', 'Invalid access token passed.', { soft_logout: this.#ended.get(token)?.isSoft === true })
    }
    return device
  }

  listChanged(userId: string): void {
    this.listChanges.push({ seq: this.#nextSeq(), userId })
  }

  uploadKeys(device: FakeDevice, body: Json): Json {
    const { device_keys: keys, one_time_keys: oneTime = {}, fallback_keys: fallback = {} } = body
    if (keys !== undefined) {
      const { user_id, device_id } = keys as { user_id?: unknown; device_id?: unknown }
      if (user_id !== device.userId || device_id !== device.deviceId) throw new Refused(400, 'M_BAD_JSON', 'device_keys of another device')
      if (JSON.stringify(device.keys) !== JSON.stringify(keys)) {
        device.keys = keys as Json
        this.listChanged(device.userId)
      }
    }
    for (const [id, value] of Object.entries(oneTime as Json)) {
      const known = device.uploaded.get(id)
      if (known !== undefined && known !== JSON.stringify(value)) {
        throw new Refused(400, 'M_UNKNOWN', `One time key ${id} already exists. Old key: ${known}; new key: ${JSON.stringify(value)}`)
      }
      if (known === undefined) device.oneTimeKeys.set(id, value)
      device.uploaded.set(id, JSON.stringify(value))
    }
    for (const [id, value] of Object.entries(fallback as Json)) {
      device.fallbackKeys.set(id.split(':')[0] ?? '', { key: id, value, isUsed: false })
    }
    return { one_time_key_counts: oneTimeCounts(device) }
  }

  queryKeys(body: Json, asker: string): Json {
    const asked = body.device_keys
    if (typeof asked !== 'object' || asked === null) throw new Refused(400, 'M_BAD_JSON', 'device_keys is missing')
    const found: Record<string, Record<string, Json>> = {}
    const keysOf = (name: keyof FakeUser['crossSigning']) =>
      Object.fromEntries(
        Object.keys(asked).flatMap((userId) => {
          const key = this.users.get(userId)?.crossSigning[name]
          return key && (name !== 'user_signing_key' || userId === asker) ? [[userId, key]] : []
        }),
      )
    for (const userId of Object.keys(asked)) {
      found[userId] = {}
      for (const { deviceId, keys } of this.users.get(userId)?.devices.values() ?? []) {
        if (keys) found[userId][deviceId] = { ...keys, unsigned: { device_display_name: 'A device' } }
      }
    }
    return {
      device_keys: found,
      failures: {},
      master_keys: keysOf('master_key'),
      self_signing_keys: keysOf('self_signing_key'),
      user_signing_keys: keysOf('user_signing_key'),
    }
  }

  /** Each one-time key is given away once; without one, the fallback key is. */
  claimKeys(body: Json): Json {
    const found: Record<string, Record<string, Json>> = {}
    for (const [userId, devices] of Object.entries((body.one_time_keys ?? {}) as Record<string, Record<string, string>>)) {
      for (const [deviceId, algorithm] of Object.entries(devices)) {
        const device = this.users.get(userId)?.devices.get(deviceId)
        const [id] = [...(device?.oneTimeKeys.keys() ?? [])].filter((key) => key.startsWith(`${algorithm}:`))
        const fallback = device?.fallbackKeys.get(algorithm)
        const claimed = id !== undefined ? { [id]: device?.oneTimeKeys.get(id) } : fallback && { [fallback.key]: fallback.value }
        if (id !== undefined) device?.oneTimeKeys.delete(id)
        else if (fallback) fallback.isUsed = true
        if (claimed) found[userId] = { ...found[userId], [deviceId]: claimed }
      }
    }
    return { one_time_keys: found, failures: {} }
  }

  sendToDevice(sender: string, type: string, body: Json): void {
    for (const [userId, messages] of Object.entries((body.messages ?? {}) as Record<string, Record<string, Json>>)) {
      for (const [deviceId, content] of Object.entries(messages)) {
        const devices = this.users.get(userId)?.devices
        const targets = deviceId === '*' ? [...(devices?.values() ?? [])] : [devices?.get(deviceId)]
        for (const target of targets) target?.inbox.push({ seq: this.#nextSeq(), event: { type, sender, content } })
      }
    }
  }

  /** Adds signatures to the keys of devices and to cross-signing keys. */
  addSignatures(body: Record<string, Record<string, { readonly signatures?: Record<string, Json> }>>): Json {
    for (const [userId, objects] of Object.entries(body)) {
      const user = this.user(userId)
      for (const [id, { signatures = {} }] of Object.entries(objects)) {
        const device = user.devices.get(id)
        const merged = (known: Json) => ({ ...known, signatures: mergeSignatures(known.signatures as Record<string, Json>, signatures) })
        if (device?.keys) device.keys = merged(device.keys)
        else if (user.crossSigning.master_key) user.crossSigning.master_key = merged(user.crossSigning.master_key)
      }
      this.listChanged(userId)
    }
    return { failures: {} }
  }
}

function mergeSignatures(known: Record<string, Json> = {}, added: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(
    [...new Set([...Object.keys(known), ...Object.keys(added)])].map((userId) => [userId, { ...known[userId], ...added[userId] }]),
  )
}

export function oneTimeCounts(device: FakeDevice): Record<string, number> {
  const count = [...device.oneTimeKeys.keys()].filter((id) => id.startsWith('signed_curve25519:')).length
  return { signed_curve25519: count }
}
