/** The meaning of the end of a connection, by its status code. Source: `DisconnectReason` of baileys, and the stanzas `failure` and `stream:error`. */
import { AppError } from '@sluice/sdk'

/** How a connection ended. */
export interface Ending {
  /** Undefined if no code was given. */
  readonly code: number | undefined
  readonly reason: string
}

const LOGGED_OUT = 401
const RESTART = 515

export const NOT_LINKED = 'No phone has linked this device; run: sluice channels link'
const FORBIDDEN: Readonly<Record<number, string>> = {
  [LOGGED_OUT]: 'The phone has removed this device, and its keys are deleted; link it again: sluice channels link',
  403: 'WhatsApp has blocked the account',
  405: 'WhatsApp refuses this version of WhatsApp Web; update Sluice, or set web_version',
  406: 'WhatsApp has blocked the account',
  411: 'The account does not allow linked devices; update WhatsApp on the phone',
  440: 'Another program has connected with the keys of this device; stop it, or link a device of its own',
}

/** True if the phone has removed the device, so that its keys are worthless. */
export const isLoggedOut = ({ code }: Ending): boolean => code === LOGGED_OUT

/** The error of a connection that ended; undefined if WhatsApp only asks for another connection. */
export function errorOf({ code, reason }: Ending): AppError | undefined {
  if (code === RESTART) return undefined
  const refused = code === undefined ? undefined : FORBIDDEN[code]
  if (refused !== undefined) return new AppError('forbidden', refused)
  return new AppError('unavailable', `WhatsApp ended the connection: ${reason}${code === undefined ? '' : ` (${code})`}`)
}
