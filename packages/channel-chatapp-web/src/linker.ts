/** Links the device to an account: shows a QR code or a code to type, and connects once after a phone has confirmed it. */
import { AppError, type ChannelLink, errorText, type Host, type LinkStatus } from '@sluice/sdk'
import { encode } from 'uqr'
import { errorOf, isLoggedOut } from './close-codes.ts'
import type { ChatappWebConfig } from './config.ts'
import type { Connection } from './connection.ts'
import { Device } from './device.ts'
import { DeviceState } from './device-state.ts'
import { senderOf } from './jid.ts'
import { type Library, loadLibrary } from './library.ts'

/** The platform gives codes for about three minutes. */
const LINK_MS_MAX = 200_000
const LOGINS_MAX = 3

/** A QR code of the platform has no margin here; the caller that draws it adds one. */
const rowsOf = (text: string): string[] =>
  encode(text, { ecc: 'L', border: 0 }).data.map((row) => row.map((isDark) => (isDark ? '1' : '0')).join(''))

interface Attempt {
  readonly abort: AbortController
  readonly ended: Promise<void>
}

export class Linker implements ChannelLink {
  readonly #host: Host
  readonly #config: ChatappWebConfig
  readonly #prefix: string
  readonly #connection: Connection
  #attempt: Attempt | undefined
  /** The status that the running attempt shows. */
  #shown: LinkStatus = { state: 'linking' }
  /** Why the last attempt failed. */
  #failure: string | undefined

  constructor(host: Host, config: ChatappWebConfig, prefix: string, connection: Connection) {
    this.#host = host
    this.#config = config
    this.#prefix = prefix
    this.#connection = connection
  }

  async status(): Promise<LinkStatus> {
    if (this.#attempt) return this.#shown
    const state = await this.#open(await loadLibrary())
    if (state.isLinked) return { state: 'linked', account: senderOf(state.creds.me?.id ?? '') ?? '' }
    return { state: 'unlinked', ...(this.#failure !== undefined && { reason: this.#failure }) }
  }

  async start({ phone = this.#config.pair_phone }: { readonly phone?: string }): Promise<LinkStatus> {
    const digits = phone?.replace(/\D/g, '')
    if (digits !== undefined && !/^\d{6,15}$/.test(digits))
      throw new AppError('invalid_request', 'The telephone number must have its country code, such as +15550002222')
    const library = await loadLibrary()
    await this.#cancel()
    const state = await this.#open(library)
    if (state.isLinked) throw new AppError('conflict', 'A device is linked. Unlink it before you link another one.')
    const abort = new AbortController()
    this.#failure = undefined
    this.#shown = { state: 'linking' }
    const linked = this.#run(library, digits, abort.signal).then(
      () => true,
      (error: unknown) => {
        this.#failure = errorText(error)
        return false
      },
    )
    const attempt: Attempt = { abort, ended: linked.then(() => undefined) }
    this.#attempt = attempt
    void linked.then((isLinked) => {
      if (this.#attempt === attempt) this.#attempt = undefined
      // The channel connects at once when it is built again.
      if (isLinked) this.#host.rebuild('a phone has linked the device')
    })
    return this.#shown
  }

  async unlink(signal: AbortSignal): Promise<void> {
    if (this.#attempt) return this.#cancel()
    const online = this.#connection.online
    if (online)
      await sayGoodbye(online.device, signal, (reason) => this.#host.log.warn('phone not told of the end', { channel: 'chatapp', reason }))
    const state = online?.device.state ?? (await this.#open(await loadLibrary()))
    // A connection that goes on could store keys again.
    await this.#connection.stop()
    await state.erase()
    this.#failure = undefined
  }

  #open(library: Library): Promise<DeviceState> {
    const { secrets, clock } = this.#host
    return DeviceState.open({ library, secrets, clock, prefix: this.#prefix })
  }

  async #cancel(): Promise<void> {
    const attempt = this.#attempt
    attempt?.abort.abort()
    await attempt?.ended
    this.#attempt = undefined
  }

  /** Rejects with the reason if the device was not linked. */
  async #run(library: Library, phone: string | undefined, signal: AbortSignal): Promise<void> {
    const before = await this.#open(library)
    // Keys that no phone has confirmed, such as the keys of a failed attempt, are worthless.
    await before.erase()
    const state = await this.#open(library)
    const problem = await this.#confirm(library, state, phone, signal)
    if (!state.isLinked) throw problem ?? new AppError('unavailable', 'Nobody has confirmed the device')
    // The phone waits for the first login, in which the device uploads its keys.
    let failure: AppError | undefined
    for (let login = 1; login <= LOGINS_MAX && !signal.aborted; login++) {
      const device = this.#device(library, state)
      const isOpen = await Promise.race([device.opened.then(() => true), device.ended.then(() => false), aborted(signal).then(() => false)])
      await device.close()
      if (isOpen) return
      const ending = await device.ended
      if (isLoggedOut(ending)) await state.erase()
      failure = errorOf(ending)
      if (failure?.code === 'forbidden') break
    }
    if (failure) throw failure
  }

  #device(library: Library, state: DeviceState): Device {
    return new Device({ library, state, config: this.#config, log: this.#host.log, onReceived: () => undefined })
  }

  /** Shows codes until a phone has confirmed the device, or the connection ended. Returns why it ended. */
  async #confirm(library: Library, state: DeviceState, phone: string | undefined, signal: AbortSignal): Promise<AppError | undefined> {
    const device = this.#device(library, state)
    const over = new AbortController()
    const late = this.#host.clock.sleep(LINK_MS_MAX, over.signal).then(() => undefined)
    let isCodeAsked = false
    device.onUpdate(({ qr }) => {
      if (qr === undefined) return
      if (phone === undefined) this.#shown = { state: 'linking', qr: { text: qr, rows: rowsOf(qr) } }
      else if (!isCodeAsked) {
        isCodeAsked = true
        void this.#showCode(device, phone)
      }
    })
    try {
      const ending = await Promise.race([device.ended, late, aborted(signal)])
      return ending && errorOf(ending)
    } finally {
      over.abort()
      await device.close()
    }
  }

  async #showCode(device: Device, phone: string): Promise<void> {
    try {
      const code = await device.sock.requestPairingCode(phone)
      this.#shown = { state: 'linking', code: `${code.slice(0, 4)}-${code.slice(4)}` }
    } catch (error) {
      this.#failure = errorText(error)
      await device.close()
    }
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    if (signal.aborted) resolve(undefined)
  })

/** Asks the platform to remove the device from the account. */
async function sayGoodbye(device: Device, signal: AbortSignal, onFailure: (reason: string) => void): Promise<void> {
  try {
    await Promise.race([device.sock.logout(), aborted(signal)])
    await Promise.race([device.ended, aborted(signal)])
  } catch (error) {
    onFailure(errorText(error))
  }
}
