/** The browsers that want notifications: at most one subscription for each paired device, encrypted in the secret store. */
import { AppError, type PairedDevice, type Pairing, type SecretStore } from '@sluice/sdk'
import * as v from 'valibot'
import { areBrowserKeys } from './encrypt.ts'

const ENDPOINT_CHARS_MAX = 2048
const SUBSCRIPTIONS_MAX = 200
const PER_PERSON_MAX = 10
const PREFIX = 'subscription:'

const base64url = v.pipe(v.string(), v.maxLength(128), v.regex(/^[\w-]+$/, 'It must be base64url'))
const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'base64url')

/** The subscription as `PushSubscription.toJSON` of a browser gives it. */
export const browserSubscriptionSchema = v.pipe(
  v.object({
    endpoint: v.pipe(
      v.string(),
      v.maxLength(ENDPOINT_CHARS_MAX),
      v.check(isEndpoint, 'It must be an https address without a user name'),
      v.description('The address at the push service of the browser'),
    ),
    keys: v.object({
      p256dh: v.pipe(base64url, v.description('The public key of the browser: 65 bytes')),
      auth: v.pipe(base64url, v.description('The authentication secret of the browser: 16 bytes')),
    }),
  }),
  v.check(
    ({ keys: { p256dh, auth } }) => areBrowserKeys({ p256dh: bytesOf(p256dh), auth: bytesOf(auth) }),
    'The keys are not those of a browser',
  ),
)

function isEndpoint(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && url.protocol === 'https:' && url.username === '' && url.password === '' && url.hash === ''
}

const storedSchema = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({ endpoint: v.string(), p256dh: v.string(), auth: v.string(), createdAtMs: v.number() }),
)

export interface Subscription {
  readonly device: PairedDevice
  readonly endpoint: URL
  readonly p256dh: Uint8Array
  readonly auth: Uint8Array
  readonly createdAtMs: number
  /** The text that is stored, by which a change notices another one. */
  readonly stored: string
}

export class Subscriptions {
  readonly #secrets: SecretStore
  readonly #pairing: () => Pick<Pairing, 'devices' | 'device'> | undefined
  /** One change at a time, so that two do not share the last free place. */
  #changing: Promise<unknown> = Promise.resolve()

  constructor(secrets: SecretStore, pairing: () => Pick<Pairing, 'devices' | 'device'> | undefined) {
    this.#secrets = secrets
    this.#pairing = pairing
  }

  /** Resolves to the subscriptions of paired devices, and deletes the subscriptions of devices that were revoked or have expired. */
  async list(): Promise<readonly Subscription[]> {
    const rows = await this.#secrets.list(PREFIX, SUBSCRIPTIONS_MAX * 2)
    if (rows.length === 0) return []
    const devices = new Map((await this.#pairing()?.devices())?.map((device) => [device.id, device]))
    const found: Subscription[] = []
    for (const { name, value } of rows) {
      const device = devices.get(name.slice(PREFIX.length))
      if (device) found.push(read(device, value))
      else await this.#secrets.swap(name, value, undefined)
    }
    return found
  }

  /** Reads no other subscription, because it is asked for before each attempt. */
  async of(device: string): Promise<Subscription | undefined> {
    const stored = await this.#secrets.get(PREFIX + device)
    const paired = stored === undefined ? undefined : await this.#pairing()?.device(device)
    return stored !== undefined && paired ? read(paired, stored) : undefined
  }

  /**
   * Sets the subscription of a device. An endpoint belongs to one device: the one that gave it last. When all places are taken, an operator
   * takes the one that a client has had longest: resolves to the displaced subscription. Throws `conflict` when no place is free.
   */
  set(
    deviceId: string,
    { endpoint, keys }: v.InferOutput<typeof browserSubscriptionSchema>,
    nowMs: number,
  ): Promise<Subscription | undefined> {
    const { href } = new URL(endpoint)
    return this.#change(async () => {
      const device = await this.#pairing()?.device(deviceId)
      if (!device) throw new AppError('conflict', 'This browser is not paired any more.')
      const others = (await this.list()).filter((one) => one.device.id !== deviceId)
      const same = others.filter((one) => one.endpoint.href === href)
      const displaced = displacedBy(
        device,
        others.filter((one) => !same.includes(one)),
      )
      const stored = JSON.stringify({ endpoint: href, p256dh: keys.p256dh, auth: keys.auth, createdAtMs: nowMs })
      const removed = displaced ? [...same, displaced] : same
      await this.#secrets.setAll(
        new Map([[PREFIX + deviceId, stored], ...removed.map((one) => [PREFIX + one.device.id, undefined] as const)]),
      )
      return displaced
    })
  }

  /** Resolves to false when the device has none. */
  remove(device: string): Promise<boolean> {
    return this.#change(async () => {
      const kept = await this.#secrets.get(PREFIX + device)
      return kept !== undefined && this.#secrets.swap(PREFIX + device, kept, undefined)
    })
  }

  /** Deletes a subscription that its push service does not know any more, unless the browser has set another one since. */
  async drop({ device, stored }: Subscription): Promise<void> {
    await this.#secrets.swap(PREFIX + device.id, stored, undefined)
  }

  #change<Result>(work: () => Promise<Result>): Promise<Result> {
    const changing = this.#changing.then(work)
    this.#changing = changing.catch(() => undefined)
    return changing
  }
}

/** Returns the subscription that loses its place to the one of a device. Throws `conflict` when none can be displaced. */
function displacedBy({ role, origin }: PairedDevice, others: readonly Subscription[]): Subscription | undefined {
  if (others.filter(({ device }) => device.origin === origin).length >= PER_PERSON_MAX)
    throw new AppError(
      'conflict',
      `${PER_PERSON_MAX} of your browsers have notifications, which is the most. Turn them off in one of these.`,
    )
  if (others.length < SUBSCRIPTIONS_MAX) return undefined
  const clients = role === 'operator' ? others.filter(({ device }) => device.role === 'client') : []
  const [longest] = clients.toSorted((a, b) => a.createdAtMs - b.createdAtMs)
  if (longest) return longest
  throw new AppError(
    'conflict',
    `${SUBSCRIPTIONS_MAX} browsers have notifications, which is the most. \`sluice web-push remove\` removes one.`,
  )
}

function read(device: PairedDevice, stored: string): Subscription {
  const { endpoint, p256dh, auth, createdAtMs } = v.parse(storedSchema, stored)
  return { device, endpoint: new URL(endpoint), p256dh: bytesOf(p256dh), auth: bytesOf(auth), createdAtMs, stored }
}
