/** What the options of both ceremonies have in common. */
import type { Passkey } from './passkeys.ts'

/** How long a browser lets its user think. */
export const TIMEOUT_MS = 60_000
/** Challenges that wait: of one device, and devices that have any. */
export const PENDING_PER_DEVICE_MAX = 16
export const DEVICES_MAX = 64

/** How browsers are told of a passkey. */
export const descriptorOf = ({ id, transports }: Passkey) => ({ type: 'public-key', id, transports })
