/** One connection: logs in, enters the rooms, and syncs until a sync fails. */
import { list } from '@sluice/kit/foreign-json'
import {
  type Address,
  AppError,
  type Attachment,
  type Channel,
  type Deliver,
  errorText,
  type Host,
  type ListenContext,
  type Media,
  type Outbound,
  type Sent,
} from '@sluice/sdk'
import { isLoggedOut, isRefused } from './api.ts'
import type { FedchatConfig } from './config.ts'
import { Intake } from './intake.ts'
import { fetchMedia } from './media.ts'
import { type ParagraphPace, sendMessage, showTyping, updateMessage } from './send.ts'
import { openSession, prepareDevice, problemOf, type Session } from './session.ts'
import { syncOnce } from './sync.ts'

/** The state of a listening channel, which lasts for all of its connections. */
interface Open {
  readonly session: Session
  readonly intake: Intake
  readonly signal: AbortSignal
  /** Whether a connection uses it. */
  isInUse: boolean
}

export class Connection {
  readonly #host: Host
  readonly #config: FedchatConfig
  #open: Open | undefined
  /** Settles when the session that was closed last has released its keys. */
  #closing: Promise<void> = Promise.resolve()

  /** Present if each paragraph of a reply is a message. */
  readonly #pace: ParagraphPace | undefined

  constructor(host: Host, config: FedchatConfig) {
    this.#host = host
    this.#config = config
    const { stream_mode: mode, multi_message_delay_ms: everyMs } = config
    this.#pace = mode === 'multi_message' ? { clock: host.clock, everyMs } : undefined
  }

  /** The session while the channel is connected, for commands. */
  get session(): Session | undefined {
    return this.#open?.session
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    let open: Open | undefined
    try {
      open = await this.#openFor(deliver, context)
      open.isInUse = true
      const { session, intake } = open
      await this.#enterRooms(session, signal)
      await prepareDevice(session, this.#config, signal)
      // The first sync returns at once, so that the health recovers without delay.
      await syncOnce({ session, intake, context, clock: this.#host.clock, isFirst: true })
      report.connected()
      report.problem(problemOf(session))
      while (!signal.aborted) await syncOnce({ session, intake, context, clock: this.#host.clock, isFirst: false })
    } catch (error) {
      if (isLoggedOut(error) || isForbidden(error)) this.#close()
      if (!signal.aborted) throw isLoggedOut(error) ? new AppError('unavailable', errorText(error), { cause: causeOf(error) }) : error
    } finally {
      if (open) open.isInUse = false
      if (signal.aborted) {
        this.#close()
        await this.#closing
      }
    }
  }

  /** See `Channel.send`. */
  send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    return this.#whileConnected((session) => sendMessage(session, to, message, { log: this.#host.log, pace: this.#pace }, signal))
  }

  /** See `Channel.update`. */
  update(to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
    return this.#whileConnected((session) => updateMessage(session, to, sent, message, this.#host.log, signal))
  }

  typing(to: Address, signal: AbortSignal): Promise<void> {
    return this.#whileConnected((session) => showTyping(session, to, signal))
  }

  /** See `Channel.fetchMedia`. */
  fetchMedia(attachment: Attachment, options: Parameters<NonNullable<Channel['fetchMedia']>>[1]): Promise<Media> {
    return this.#whileConnected(({ api }) => fetchMedia(api, this.#host, attachment, options))
  }

  async #whileConnected<Result>(use: (session: Session) => Promise<Result>): Promise<Result> {
    const session = this.#open?.session
    if (!session) throw new AppError('unavailable', 'The homeserver is not connected')
    return use(session)
  }

  /** Opens the session, which later connections use again. */
  async #openFor(deliver: Deliver, context: ListenContext): Promise<Open> {
    const { signal, lease } = context
    if (this.#open?.signal === signal) return this.#open
    this.#close()
    await this.#closing
    const session = await openSession(this.#host, this.#config, () => lease?.mayAct() !== false, signal)
    const intake = await Intake.create(this.#host, this.#config, session, deliver, context)
    const open = { session, intake, signal, isInUse: true }
    this.#open = open
    // The channel may stop while it waits for the next connection.
    signal.addEventListener('abort', () => !open.isInUse && this.#open === open && this.#close(), { once: true })
    return open
  }

  #close(): void {
    const open = this.#open
    this.#open = undefined
    if (open) this.#closing = open.session.close()
  }

  /** Joins the configured rooms, and notes the ones that the bot cannot enter. */
  async #enterRooms({ api, rooms, problems }: Session, signal: AbortSignal): Promise<void> {
    problems.clear()
    for (const alias of await rooms.resolve(signal)) problems.set(alias, `the homeserver does not know the room ${alias}`)
    const { joined_rooms: joined } = await api.client('GET', ['joined_rooms'], { signal })
    for (const room of rooms.acceptedIds.filter((id) => !list(joined).includes(id))) {
      try {
        await api.client('POST', ['join', room], { body: {}, signal })
      } catch (error) {
        if (!isRefused(error, 'M_FORBIDDEN', 'M_NOT_FOUND', 'M_UNKNOWN')) throw error
        problems.set(room, `the bot is not in the room ${room} and cannot join it; invite it (${errorText(error)})`)
      }
    }
  }
}

const isForbidden = (error: unknown): boolean => error instanceof AppError && error.code === 'forbidden'

const causeOf = (error: unknown): unknown => (error instanceof Error ? error.cause : undefined)
