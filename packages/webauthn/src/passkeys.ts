/** The passkeys of all users, stored encrypted in the secret store (docs/contract.md#secrets). */
import { AppError, type Pairing, ROLES, type SecretStore } from '@sluice/sdk'
import * as v from 'valibot'

const PASSKEYS_PER_USER_MAX = 20
const USERS_MAX = 1000
/** All passkeys are one secret, which each sign-in rewrites. */
const PASSKEYS_MAX = 2000
const SECRET = 'passkeys'

const passkeySchema = v.object({
  /** The credential id, in base64url. */
  id: v.string(),
  /** The COSE key, in base64url. */
  publicKey: v.string(),
  /** The COSE algorithm. */
  algorithm: v.number(),
  /** The counter of the last accepted sign-in. */
  counter: v.number(),
  label: v.string(),
  transports: v.array(v.string()),
  aaguid: v.string(),
  /** Whether the authenticator may copy the passkey to other devices. This never changes. */
  mayBeBackedUp: v.boolean(),
  /** Whether the authenticator has copied the passkey to other devices. */
  isBackedUp: v.boolean(),
  registeredAtMs: v.number(),
  /** The device whose token registered the passkey; null if the gateway required no pairing. */
  registeredBy: v.nullable(v.string()),
  /** The role of the tokens that a sign-in with this passkey yields. */
  role: v.optional(v.picklist(ROLES), 'operator'),
  lastUsedAtMs: v.nullable(v.number()),
  /** The time at which the counter did not increase, since when the passkey is refused; null while it is usable. */
  disabledAtMs: v.nullable(v.number()),
})
const userSchema = v.object({ name: v.string(), passkeys: v.array(passkeySchema) })
const secretSchema = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({ version: v.literal(1), users: v.array(v.tuple([v.string(), userSchema])) }),
)

export type Passkey = Readonly<v.InferOutput<typeof passkeySchema>>

interface User {
  readonly name: string
  readonly passkeys: readonly Passkey[]
}

type Users = ReadonlyMap<string, User>

export interface OwnedPasskey {
  readonly userId: string
  readonly userName: string
  readonly passkey: Passkey
}

export interface PasskeyCount {
  readonly users: number
  readonly passkeys: number
  readonly disabled: number
}

/** Describes a passkey in the options of a ceremony, in the spelling of the W3C specification. */
export const credentialDescriptor = ({ id, transports }: Passkey) => ({ type: 'public-key', id, transports })

/**
 * Reads and changes the stored passkeys. No change of this or another process is lost, and each is on disk when its promise resolves. Passkeys
 * that a revoked device registered are never returned, and the next change removes them. Every method throws `internal` if
 * the stored passkeys cannot be read.
 */
export class PasskeyStore {
  readonly #secrets: SecretStore
  readonly #pairing: () => Pick<Pairing, 'revokedAmong'> | undefined

  constructor(secrets: SecretStore, pairing: () => Pick<Pairing, 'revokedAmong'> | undefined = () => undefined) {
    this.#secrets = secrets
    this.#pairing = pairing
  }

  /** Returns the passkeys of a user; an unknown user has none. */
  of(userId: string): Promise<readonly Passkey[]> {
    return this.#read((users) => users.get(userId)?.passkeys ?? [])
  }

  /** Returns all passkeys in the order of their registration. */
  all(): Promise<readonly OwnedPasskey[]> {
    return this.#read((users) =>
      [...users].flatMap(([userId, { name, passkeys }]) => passkeys.map((passkey) => ({ userId, userName: name, passkey }))),
    )
  }

  count(): Promise<PasskeyCount> {
    return this.#read((users) => {
      const all = passkeysIn(users)
      return { users: users.size, passkeys: all.length, disabled: all.filter(({ disabledAtMs }) => disabledAtMs !== null).length }
    })
  }

  /** Throws `conflict` if the user cannot have another passkey. */
  checkRoom(userId: string): Promise<void> {
    return this.#read((users) => checkRoom(users, userId))
  }

  /** Throws `conflict` if any user has a passkey with this id, or if the user cannot have another passkey. */
  async add(userId: string, userName: string, passkey: Passkey): Promise<void> {
    await this.#change((users) => {
      checkRoom(users, userId)
      if (passkeysIn(users).some(({ id }) => id === passkey.id)) throw new AppError('conflict', 'This passkey is registered already')
      return new Map(users).set(userId, { name: userName, passkeys: [...(users.get(userId)?.passkeys ?? []), passkey] })
    })
  }

  /** Replaces a passkey by the result of `edit`, which gets its current state. Returns false if the user has no such passkey. */
  update(userId: string, id: string, edit: (passkey: Passkey) => Passkey): Promise<boolean> {
    return this.#change((users) => {
      const user = users.get(userId)
      if (!user?.passkeys.some((passkey) => passkey.id === id)) return undefined
      const passkeys = user.passkeys.map((passkey) => (passkey.id === id ? edit(passkey) : passkey))
      return new Map(users).set(userId, { ...user, passkeys })
    })
  }

  /** Removes a passkey of the given user, or of any user. Returns false if it does not exist or has another owner. */
  remove(userId: string | undefined, id: string): Promise<boolean> {
    return this.#change((users) => {
      const owner = [...users].find(([, { passkeys }]) => passkeys.some((passkey) => passkey.id === id))?.[0]
      if (owner === undefined || (userId !== undefined && userId !== owner)) return undefined
      return withPasskeys(users, (passkey) => passkey.id !== id)
    })
  }

  async #read<Result>(use: (users: Users) => Result): Promise<Result> {
    return use(await this.#parse(await this.#secrets.get(SECRET)))
  }

  /** Stores the result of `edit`. Returns false, and stores nothing, if `edit` returns undefined. */
  async #change(edit: (users: Users) => Users | undefined): Promise<boolean> {
    for (;;) {
      const before = await this.#secrets.get(SECRET)
      const users = edit(await this.#parse(before))
      if (!users) return false
      // When another change was stored meanwhile, this one is made again on top of it.
      if (await this.#secrets.swap(SECRET, before, JSON.stringify({ version: 1, users: [...users] }))) return true
    }
  }

  async #parse(text: string | undefined): Promise<Users> {
    if (text === undefined) return new Map()
    const read = v.safeParse(secretSchema, text)
    if (!read.success) throw new AppError('internal', 'The stored passkeys cannot be read')
    return this.#withoutRevoked(new Map(read.output.users))
  }

  async #withoutRevoked(users: Users): Promise<Users> {
    const registrars = new Set(passkeysIn(users).flatMap(({ registeredBy }) => registeredBy ?? []))
    const revoked = new Set(registrars.size > 0 ? await this.#pairing()?.revokedAmong([...registrars]) : [])
    // Passkeys that were registered in the name of a user are of an earlier version, and no revocation would ever end them.
    const isKept = (registrar: string): boolean => !revoked.has(registrar) && !isUser(registrar)
    return withPasskeys(users, ({ registeredBy }) => registeredBy === null || isKept(registeredBy))
  }
}

/** Prefixes the id of a user in the place of a device. No device has such an id. */
const USER = 'user:'

/**
 * Returns the issuer of the tokens from sign-ins with a passkey: the device that registered it. A passkey that no device registered has
 * its user in this place, so that all of its sign-ins are taken for one person. A user cannot be revoked.
 */
export const issuerOf = (userId: string, { registeredBy }: Pick<Passkey, 'registeredBy'>): string => registeredBy ?? USER + userId

export const isUser = (issuer: string): boolean => issuer.startsWith(USER)

/** Returns the users with only the passkeys that `keeps` accepts, without users that have none left. */
const withPasskeys = (users: Users, keeps: (passkey: Passkey) => boolean): Users =>
  new Map(
    [...users]
      .map(([id, user]): [string, User] => [id, { ...user, passkeys: user.passkeys.filter(keeps) }])
      .filter(([, { passkeys }]) => passkeys.length > 0),
  )

const passkeysIn = (users: Users): Passkey[] => [...users.values()].flatMap(({ passkeys }) => passkeys)

function checkRoom(users: Users, userId: string): void {
  const user = users.get(userId)
  if (user && user.passkeys.length >= PASSKEYS_PER_USER_MAX)
    throw new AppError('conflict', `A user can have at most ${PASSKEYS_PER_USER_MAX} passkeys; delete one first`)
  if (!user && users.size >= USERS_MAX)
    throw new AppError('conflict', `At most ${USERS_MAX} users can have passkeys; delete all passkeys of another user first`)
  if (passkeysIn(users).length >= PASSKEYS_MAX)
    throw new AppError('conflict', `The gateway can have at most ${PASSKEYS_MAX} passkeys; delete one first`)
}
