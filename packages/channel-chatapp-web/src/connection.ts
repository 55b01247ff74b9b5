/** The connection of the channel: receives messages from the linked device, and sends through it while it is connected. */
import { endsWithin, storePatiently } from '@sluice/kit'
import {
  type Address,
  AppError,
  type Attachment,
  type Deliver,
  errorText,
  type Host,
  type Inbound,
  type ListenContext,
  type Media,
  type Outbound,
  type Sent,
  sha256Hex,
} from '@sluice/sdk'
import { errorOf, isLoggedOut, NOT_LINKED } from './close-codes.ts'
import type { ChatappWebConfig } from './config.ts'
import { Device } from './device.ts'
import { DeviceState } from './device-state.ts'
import { findSession } from './import-session.ts'
import { addressOf, partsOf, senderOf } from './jid.ts'
import { type Library, loadLibrary } from './library.ts'
import { type FetchOptions, fetchMedia } from './media.ts'
import { parse } from './parse.ts'
import { Questions } from './questions.ts'
import { editMessage, type Sender, sendMessage } from './send.ts'
import { VoiceReplies } from './voice-replies.ts'

const PREFIX_CHARS = 16

/** The names of the records of a device: another section or another `session_path` is another device. */
export const prefixOf = (section: string, { session_path: path = '' }: ChatappWebConfig): string =>
  `${sha256Hex(`${section} ${path}`).slice(0, PREFIX_CHARS)}/`

/** A device that is connected. */
interface Online extends Sender {
  readonly library: Library
}

export class Connection {
  readonly #host: Host
  readonly #config: ChatappWebConfig
  readonly #prefix: string
  readonly #questions: Questions
  readonly #voice: VoiceReplies
  #online: Online | undefined
  /** Ends the connection that runs. */
  #stop: AbortController | undefined
  /** Resolves when the last connection has ended. */
  #closed: Promise<void> = Promise.resolve()
  #isAsked = false

  constructor(host: Host, config: ChatappWebConfig, prefix: string) {
    this.#host = host
    this.#config = config
    this.#prefix = prefix
    this.#questions = new Questions(host.keyValue, prefix)
    this.#voice = new VoiceReplies(host)
  }

  /** The library while the device is connected, with its connection. */
  get online(): Sender | undefined {
    return this.#online
  }

  /** Ends the connection that runs, because the keys of the device are about to be deleted. Resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stop?.abort()
    await this.#closed
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const library = await loadLibrary()
    if (!this.#isAsked) await this.#questions.load()
    this.#isAsked = true
    const { secrets, clock, log } = this.#host
    const mayWrite = (): boolean => context.lease?.mayAct() ?? true
    const state = await DeviceState.open({ library, secrets, clock, prefix: this.#prefix, mayWrite })
    if (!state.isLinked && !(await this.#hasAdopted(library, state))) {
      // Messages that the device had received before the phone removed it are delivered all the same.
      await this.#deliverReceived({ state, library, deliver, context })
      throw new AppError('forbidden', NOT_LINKED)
    }
    const intake = new Intake()
    const stop = new AbortController()
    this.#stop = stop
    const abort = (): void => stop.abort()
    context.signal.addEventListener('abort', abort, { once: true })
    if (context.signal.aborted) abort()
    const device = new Device({ library, state, config: this.#config, log, onReceived: () => intake.wake() })
    const delivering = this.#deliverUntilEnd(intake, { device, state, library, deliver, context })
    const stopped = new Promise<void>((resolve) => {
      stop.signal.addEventListener('abort', () => resolve(), { once: true })
      if (stop.signal.aborted) resolve()
    })
    void device.opened.then(
      () => this.#connected(device, library, context),
      () => undefined,
    )
    const closed = Promise.withResolvers<void>()
    this.#closed = closed.promise
    try {
      await Promise.race([stopped, device.ended])
    } finally {
      this.#online = undefined
      await device.close()
      closed.resolve()
      context.signal.removeEventListener('abort', abort)
      intake.end()
      await delivering
    }
    if (stop.signal.aborted) return
    const ending = await device.ended
    if (isLoggedOut(ending)) await state.erase()
    const error = errorOf(ending)
    if (error) throw error
  }

  /** See `Channel.send`. */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const online = this.#whileOnline()
    const sent = await sendMessage(online, to, message, signal)
    if (message.buttons?.length) await this.#questions.ask(sent.id, message.buttons)
    if (this.#config.voice_replies) this.#voice.speak(online, to, message)
    return sent
  }

  /** See `Channel.update`. */
  async update(to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
    await editMessage(this.#whileOnline(), to, sent, message, signal)
    if (!message.buttons?.length) await this.#questions.close(sent.id)
  }

  async typing(to: Address): Promise<void> {
    await this.#whileOnline().device.sock.sendPresenceUpdate('composing', addressOf(to.to))
  }

  /** Marks a message as read. */
  async acknowledge({ id, to }: Inbound): Promise<void> {
    const { device } = this.#whileOnline()
    const message = partsOf(id)
    if (!message) return
    const { author } = to.more ?? {}
    await device.sock.readMessages([{ remoteJid: addressOf(to.to), id: message.id, ...(author !== undefined && { participant: author }) }])
  }

  fetchMedia(attachment: Attachment, options: FetchOptions): Promise<Media> {
    const origin = this.#config.web_url === undefined ? {} : { origin: this.#config.web_url.replace(/^ws/i, 'http') }
    return fetchMedia(this.#host, attachment, { ...options, ...origin })
  }

  /** Whether another program's device was taken over. That happens once: a device that was unlinked must not come back. */
  async #hasAdopted(library: Library, state: DeviceState): Promise<boolean> {
    const key = `adopted/${this.#prefix}`
    if ((await this.#host.keyValue.get(key)) !== undefined) return false
    const found = await findSession(library, this.#config.session_path ?? '')
    if (!found) return false
    await state.adopt(found)
    await this.#host.keyValue.set(key, true)
    this.#host.log.warn('took over a linked device; stop the other program, and delete the folder, which has its keys in plain text', {
      channel: 'chatapp',
      session_path: this.#config.session_path,
    })
    return true
  }

  #whileOnline(): Online {
    if (!this.#online) throw new AppError('unavailable', 'WhatsApp is not connected')
    return this.#online
  }

  #connected(device: Device, library: Library, { report }: ListenContext): void {
    const account = senderOf(device.state.creds.me?.id ?? '') ?? ''
    const scheme = this.#config.web_url?.startsWith('ws:') ? 'http:' : 'https:'
    this.#online = { device, library, account, files: { fetch: this.#host.fetch, scheme } }
    report.connected()
  }

  async #deliverUntilEnd(intake: Intake, options: DeliverOptions): Promise<void> {
    while (!intake.hasEnded) {
      const woken = intake.woken()
      try {
        await this.#deliverReceived(options)
      } catch (error) {
        this.#host.log.warn('received messages not read, trying again', { channel: 'chatapp', reason: errorText(error) })
        await this.#host.clock.sleep(RETRY_MS, options.context.signal)
        continue
      }
      // A message that the library gave up is waited for until its time is over.
      if (options.device?.firstOpen === undefined) await woken
      else await endsWithin(woken, RETRY_MS, this.#host.clock, options.context.signal)
    }
  }

  /** Delivers all received messages in their order. Each stays in the store until it is durable in the inbox. */
  async #deliverReceived({ device, state, library, deliver, context }: DeliverOptions): Promise<void> {
    const { signal, report } = context
    const { creds } = state
    const options = {
      library,
      config: this.#config,
      account: senderOf(creds.me?.id ?? '') ?? '',
      ownLid: senderOf(creds.me?.lid ?? '') ?? '',
      numberOf: (lidUser: string) => state.numberOf(lidUser).catch(storeFailed),
      pressed: (message: string, emoji: string) => this.#questions.pressed(message, emoji),
    }
    for (let batch = await state.received(); batch.length > 0 && !signal.aborted; batch = await state.received()) {
      const done: string[] = []
      const firstOpen = device?.firstOpen
      for (const { name, ...received } of batch) {
        if (firstOpen !== undefined && name >= firstOpen) break
        const inbound = await parse(received, options).catch((error: unknown) => {
          if (isStoreFailure(error)) throw error
          this.#host.log.warn('message not understood', { channel: 'chatapp', reason: errorText(error) })
          return undefined
        })
        if (inbound) {
          report.event()
          if (!(await storePatiently(this.#host, { channel: 'chatapp', inbound, deliver, signal }))) break
        }
        done.push(name)
      }
      if (done.length === 0) return
      await state.forget(done)
    }
  }
}

const RETRY_MS = 1000

function storeFailed(cause: unknown): never {
  throw new AppError('unavailable', `The store failed: ${errorText(cause)}`, { cause })
}

/** The platform knows that the message arrived and does not send it again, so it must be tried again. */
const isStoreFailure = (error: unknown): boolean => error instanceof AppError && error.code === 'unavailable'

interface DeliverOptions {
  /** Absent while no device is linked. */
  readonly device?: Device
  readonly state: DeviceState
  readonly library: Library
  readonly deliver: Deliver
  readonly context: ListenContext
}

/** Tells the delivery that messages have been received. */
class Intake {
  hasEnded = false
  #next = Promise.withResolvers<void>()

  /** Resolves when messages have come after this call. */
  woken(): Promise<void> {
    return this.#next.promise
  }

  wake(): void {
    this.#next.resolve()
    if (!this.hasEnded) this.#next = Promise.withResolvers()
  }

  end(): void {
    this.hasEnded = true
    this.#next.resolve()
  }
}
