/** Signs the device of an account without cross-signing keys: creates the keys with the password (client-server API, "Cross-signing"). */
import { type Members, text } from '@sluice/kit/foreign-json'
import { AppError, type Secret } from '@sluice/sdk'
import type { MatrixApi } from '../api.ts'
import type { Device } from './device.ts'

const UNAUTHORIZED = 401

interface Account {
  readonly userId: string
  readonly password: Secret
}

/** Resolves to false for an account that has keys. Throws `forbidden` when the homeserver wants more than the password. */
export const signWithPassword = (api: MatrixApi, device: Device, account: Account, signal: AbortSignal): Promise<boolean> =>
  device.createCrossSigning((keys) => upload(api, keys, account, signal), signal)

/** The homeserver answers the first request with a session of a login, unless it trusts the access token. */
async function upload(api: MatrixApi, keys: Members, { userId, password }: Account, signal: AbortSignal): Promise<void> {
  const send = (body: object) => api.client('POST', ['keys', 'device_signing', 'upload'], { body, signal, accept: [UNAUTHORIZED] })
  const first = await send(keys)
  if (!wantsLogin(first)) return
  const identifier = { type: 'm.id.user', user: userId }
  const auth = { type: 'm.login.password', identifier, password: password.reveal(), session: text(first.session) }
  if (wantsLogin(await send({ ...keys, auth })))
    throw new AppError('forbidden', 'The homeserver wants more than the password for the cross-signing keys of the bot')
}

const wantsLogin = (answer: Members): boolean => answer.flows !== undefined || answer.errcode !== undefined
