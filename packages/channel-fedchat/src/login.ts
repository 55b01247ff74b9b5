/** Finds out who the bot is, with the configured access token or by logging in with the password. */
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Logger, sha256Hex } from '@sluice/sdk'
import { isLoggedOut, isRefused, type MatrixApi, refusalOf } from './api.ts'
import type { FedchatConfig } from './config.ts'
import type { Vault } from './vault.ts'

/** The account and the device that the keys belong to. */
export interface Identity {
  readonly userId: string
  readonly deviceId: string
}

/** A login with the password. It replaces one access token of the configuration, until the operator sets another one. */
interface Login {
  readonly token: string
  readonly replaces: string
}

const LOGIN = 'login'
const IDENTITY = 'state/identity'

/** Sets the token of `api` and returns whose it is. Throws `forbidden` if only the operator can help. */
export async function identify(api: MatrixApi, vault: Vault, config: FedchatConfig, log: Logger, signal: AbortSignal): Promise<Identity> {
  const configured = config.access_token?.reveal().trim() ?? ''
  const replaces = sha256Hex(configured)
  const login = members(parsedOrUndefined((await vault.read(LOGIN)).get(LOGIN) ?? '')) as Partial<Login>
  const token = login.replaces === replaces && login.token ? login.token : configured
  if (token === '') return logIn(api, vault, config, replaces, undefined, signal)
  api.token = token
  try {
    return await whoAmI(api, config, log, signal)
  } catch (error) {
    if (!isLoggedOut(error)) throw error
    const isSoft = refusalOf(error)?.isSoftLogout === true
    if (config.password === undefined || config.user_id === undefined) throw loggedOut(isSoft)
    log.info('logging in again, because the access token is no longer valid', { channel: 'fedchat', soft_logout: isSoft })
    // The device still exists after a soft logout, and so do its keys.
    const known = isSoft ? await storedIdentity(vault) : undefined
    return logIn(api, vault, config, replaces, known?.deviceId, signal)
  }
}

const loggedOut = (isSoft: boolean): AppError =>
  new AppError(
    'forbidden',
    isSoft
      ? 'The homeserver wants the bot to log in again (soft logout): set channels_config.fedchat.access_token to a new token of the same device, or user_id and password'
      : 'The homeserver does not know the access token: set channels_config.fedchat.access_token, or user_id and password',
  )

/** The homeserver knows better than the configuration, except where it does not answer the question. */
async function whoAmI(
  api: MatrixApi,
  { user_id: userId, device_id: deviceId }: FedchatConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<Identity> {
  const answer = await api.client('GET', ['account', 'whoami'], { signal }).catch((error: unknown) => {
    if (userId !== undefined && deviceId !== undefined && isRefused(error, 'M_UNRECOGNIZED', 'M_NOT_FOUND')) return undefined
    throw error
  })
  const found = { userId: text(answer?.user_id) || (userId ?? ''), deviceId: text(answer?.device_id) || (deviceId ?? '') }
  if (found.userId === '') throw new AppError('upstream', 'The homeserver did not return the user id of the bot')
  if (found.deviceId === '') {
    throw new AppError('forbidden', 'The homeserver did not return the device of the access token: set channels_config.fedchat.device_id')
  }
  for (const [key, hint, value] of [
    ['user_id', userId, found.userId],
    ['device_id', deviceId, found.deviceId],
  ] as const) {
    if (hint !== undefined && hint !== value) log.warn(`${key} is not that of the access token`, { channel: 'fedchat', [key]: value })
  }
  return found
}

/** See "Login" in the client-server API. A known device keeps its keys. */
async function logIn(
  api: MatrixApi,
  vault: Vault,
  { user_id: user, password, device_id: configured }: FedchatConfig,
  replaces: string,
  deviceId: string | undefined,
  signal: AbortSignal,
): Promise<Identity> {
  if (user === undefined || password === undefined) throw new AppError('forbidden', 'access_token, or user_id and password, are missing')
  const device = deviceId ?? (replaces === sha256Hex('') ? (configured ?? (await storedIdentity(vault))?.deviceId) : undefined)
  let answer: Members
  try {
    answer = await api.client('POST', ['login'], {
      isAnonymous: true,
      body: {
        type: 'm.login.password',
        identifier: { type: 'm.id.user', user },
        password: password.reveal(),
        ...(device !== undefined && { device_id: device }),
        initial_device_display_name: 'Sluice',
      },
      signal,
    })
  } catch (error) {
    if (isRefused(error, 'M_FORBIDDEN', 'M_USER_DEACTIVATED'))
      throw new AppError('forbidden', 'The homeserver refuses the password of the bot')
    throw error
  }
  const { access_token: token, user_id: userId, device_id: newDevice } = answer
  if (text(token) === '' || text(userId) === '' || text(newDevice) === '') {
    throw new AppError('upstream', 'The homeserver did not answer the login with a token and a device')
  }
  api.token = text(token)
  vault.put(LOGIN, { token: text(token), replaces } satisfies Login)
  await vault.flush()
  return { userId: text(userId), deviceId: text(newDevice) }
}

async function storedIdentity(vault: Vault): Promise<Identity | undefined> {
  const stored = parsedOrUndefined((await vault.read(IDENTITY)).get(IDENTITY) ?? '')
  const { userId, deviceId } = members(stored)
  return text(userId) === '' ? undefined : { userId: text(userId), deviceId: text(deviceId) }
}

/** Deletes the keys and positions of another device, and records whose are stored from now on. */
export async function claimVault(vault: Vault, identity: Identity, log: Logger): Promise<void> {
  const stored = await storedIdentity(vault)
  if (stored?.userId === identity.userId && stored.deviceId === identity.deviceId) return
  if (stored) log.warn('this is another device, so the keys of the earlier one are deleted', { channel: 'fedchat', ...identity })
  for (const name of (await vault.read('')).keys()) if (name !== LOGIN) vault.set(name, undefined)
  vault.put(IDENTITY, identity)
  await vault.flush()
}
