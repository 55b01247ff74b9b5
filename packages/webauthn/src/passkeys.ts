/** The passkeys of all users, kept encrypted in the secret store (§4.6, §5 rule 7). */

import { Shared } from '@sluice/kit'
import { AppError, type Pairing, ROLES, type SecretStore } from '@sluice/sdk'
import * as v from 'valibot'

const PASSKEYS_PER_USER_MAX = 20
const USERS_MAX = 1000
/** Of all users together: they are one secret, which each sign-in writes anew. */
const PASSKEYS_MAX = 2000
const SECRET = 'passkeys'

const passkey = v.object({
  /** The credential id, in base64url. */
  id: v.string(),
  /** As COSE has it, in base64url. */
  publicKey: v.string(),
  /** Of COSE. */
  algorithm: v.number(),
  /** What the authenticator counted up to when it was last believed. */
  counter: v.number(),
  label: v.string(),
  transports: v.array(v.string()),
  aaguid: v.string(),
  /** Whether the authenticator may copy it to other devices, which never changes; and whether it has. */
  mayBeBackedUp: v.boolean(),
  isBackedUp: v.boolean(),
  registeredAtMs: v.number(),
  /** The device whose token it was registered with; null where no pairing is required. */
  registeredBy: v.nullable(v.string()),
  /** Of the tokens it is good for. */
  role: v.optional(v.picklist(ROLES), 'operator'),
  lastUsedAtMs: v.nullable(v.number()),
  /** Since when it is refused, because its counter went back. */
  disabledAtMs: v.nullable(v.number()),
})
const user = v.object({ name: v.string(), passkeys: v.array(passkey) })
const book = v.pipe(v.string(), v.parseJson(), v.object({ version: v.literal(1), users: v.array(v.tuple([v.string(), user])) }))

export type Passkey = Readonly<v.InferOutput<typeof passkey>>
interface User {
  readonly name: string
  readonly passkeys: readonly Passkey[]
}

export interface OwnedPasskey {
  readonly userId: string
  readonly userName: string
  readonly passkey: Passkey
}

/** Passkeys that a device registered which was revoked since are not there any more. */
export interface Passkeys {
  /** Empty for a user nobody knows. */
  of(userId: string): Promise<readonly Passkey[]>
  /** Throws `conflict` where `add` would for any passkey. */
  checkRoom(userId: string): Promise<void>
  /** Throws `conflict` for an id that is known, whoever has it, and where there is no room. */
  add(userId: string, userName: string, passkey: Passkey): Promise<void>
  /** Keeps what `change` makes of the passkey as it is by now. False if there is none by now. */
  update(userId: string, id: string, change: (passkey: Passkey) => Passkey): Promise<boolean>
  /** All there are, in the order they were registered in. */
  all(): Promise<readonly OwnedPasskey[]>
  /** False if there is no such passkey, or not of the user who is named. */
  remove(userId: string | undefined, id: string): Promise<boolean>
  count(): Promise<{ readonly users: number; readonly passkeys: number; readonly disabled: number }>
}

type Users = ReadonlyMap<string, User>

/** One change at a time; each is on disk when its promise resolves. */
export function createPasskeys(secrets: SecretStore, pairing: () => Pick<Pairing, 'revokedAmong'> | undefined = () => undefined): Passkeys {
  const turns = new Shared<undefined>('passkeys', undefined)

  const load = async (): Promise<Users> => {
    const text = await secrets.get(SECRET)
    if (text === undefined) return new Map()
    const read = v.safeParse(book, text)
    if (!read.success) throw new AppError('internal', 'The kept passkeys cannot be read')
    return withoutRevoked(new Map(read.output.users))
  }
  const withoutRevoked = async (users: Users): Promise<Users> => {
    const registrars = new Set(allIn(users).flatMap(({ registeredBy }) => registeredBy ?? []))
    const revoked = new Set((registrars.size > 0 && (await pairing()?.revokedAmong([...registrars]))) || [])
    return revoked.size === 0 ? users : filtered(users, ({ registeredBy }) => registeredBy === null || !revoked.has(registeredBy))
  }
  /** Keeps what `edit` returns; `undefined` keeps everything as it is. */
  const change = async (edit: (users: Users) => Users | undefined): Promise<boolean> => {
    let changed = false
    await turns.update(async () => {
      const users = edit(await load())
      if (users) await secrets.set(SECRET, JSON.stringify({ version: 1, users: [...users] }))
      changed = users !== undefined
      return undefined
    })
    return changed
  }
  const read = <Result>(use: (users: Users) => Result): Promise<Result> => turns.read(async () => use(await load()))

  return {
    of: (userId) => read((users) => users.get(userId)?.passkeys ?? []),
    checkRoom: (userId) => read((users) => checkRoom(users, userId)),
    async add(userId, name, added) {
      await change((users) => {
        checkRoom(users, userId)
        if (allIn(users).some(({ id }) => id === added.id)) throw new AppError('conflict', 'This passkey is registered already')
        return new Map(users).set(userId, { name, passkeys: [...(users.get(userId)?.passkeys ?? []), added] })
      })
    },
    update: (userId, id, edit) =>
      change((users) => {
        const known = users.get(userId)
        if (!known?.passkeys.some((one) => one.id === id)) return undefined
        return new Map(users).set(userId, { ...known, passkeys: known.passkeys.map((one) => (one.id === id ? edit(one) : one)) })
      }),
    all: () =>
      read((users) =>
        [...users].flatMap(([userId, { name, passkeys }]) => passkeys.map((passkey) => ({ userId, userName: name, passkey }))),
      ),
    remove: (userId, id) =>
      change((users) => {
        const owner = [...users].find(([, { passkeys }]) => passkeys.some((one) => one.id === id))?.[0]
        if (owner === undefined || (userId !== undefined && userId !== owner)) return undefined
        return filtered(users, (one) => one.id !== id)
      }),
    count: () =>
      read((users) => {
        const all = allIn(users)
        return { users: users.size, passkeys: all.length, disabled: all.filter(({ disabledAtMs }) => disabledAtMs !== null).length }
      }),
  }
}

/** What is left of the users when only these passkeys stay; a user without any goes. */
const filtered = (users: Users, stays: (passkey: Passkey) => boolean): Users =>
  new Map(
    [...users]
      .map(([id, user]): [string, User] => [id, { ...user, passkeys: user.passkeys.filter(stays) }])
      .filter(([, { passkeys }]) => passkeys.length > 0),
  )

const allIn = (users: Users): Passkey[] => [...users.values()].flatMap(({ passkeys }) => passkeys)

function checkRoom(users: Users, userId: string): void {
  const own = users.get(userId)
  if (own && own.passkeys.length >= PASSKEYS_PER_USER_MAX)
    throw new AppError('conflict', `A user has at most ${PASSKEYS_PER_USER_MAX} passkeys; delete one first`)
  if (!own && users.size >= USERS_MAX)
    throw new AppError('conflict', `There are ${USERS_MAX} users with passkeys, which is all there may be`)
  if (allIn(users).length >= PASSKEYS_MAX) throw new AppError('conflict', `There are ${PASSKEYS_MAX} passkeys, which is all there may be`)
}
