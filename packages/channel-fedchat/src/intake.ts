/** Decrypts, parses and delivers events, keeps those without a key, and decides about invitations. */
import { untilAborted } from '@sluice/kit'
import { list, type Members, members, text } from '@sluice/kit/foreign-json'
import { type Deliver, errorText, type Gap, type Host, type ListenContext } from '@sluice/sdk'
import { type FedchatConfig, isAllowed } from './config.ts'
import type { RoomEvent } from './crypto/device.ts'
import { UNVERIFIED_FIX } from './device-record.ts'
import { parse } from './parse.ts'
import type { Session } from './session.ts'
import { Waiting } from './waiting.ts'

/** The most deliveries under way; the next event waits for them. */
const DELIVERIES_MAX = 200

export class Intake {
  readonly #host: Host
  readonly #config: FedchatConfig
  readonly #session: Session
  readonly #deliver: Deliver
  readonly #onGap: (gap: Gap) => void
  readonly #waiting: Waiting
  /** The sessions whose keys arrived, and whose events have not been decrypted since. */
  readonly #arrived = new Set<string>()
  /** True until the stored events have been tried once. */
  #isNew = true
  #deliveries: Promise<void>[] = []
  /** Aborts when the channel stops, which does not wait for a store that does not answer. */
  readonly #signal: AbortSignal

  private constructor(
    host: Host,
    config: FedchatConfig,
    session: Session,
    deliver: Deliver,
    onGap: (gap: Gap) => void,
    waiting: Waiting,
    signal: AbortSignal,
  ) {
    this.#host = host
    this.#config = config
    this.#session = session
    this.#deliver = deliver
    this.#onGap = onGap
    this.#waiting = waiting
    this.#signal = signal
    session.device.onRoomKeys = (sessions) => {
      for (const id of sessions) this.#arrived.add(id)
    }
  }

  static async create(
    host: Host,
    config: FedchatConfig,
    session: Session,
    deliver: Deliver,
    { report, signal }: Pick<ListenContext, 'report' | 'signal'>,
  ): Promise<Intake> {
    return new Intake(host, config, session, deliver, report.gap, await Waiting.load(session.vault), signal)
  }

  /** Takes an event of an accepted room, in the order of the room. */
  async take(room: string, event: Members): Promise<void> {
    // In an encrypted room, only the homeserver says who wrote a message without encryption.
    if (event.type !== 'm.room.encrypted') return this.#takePlain(room, event, !this.#session.rooms.wasEncrypted(room))
    if (event.sender !== this.#session.identity.userId) await this.#takeEncrypted(room, event as RoomEvent)
  }

  async #takePlain(room: string, event: Members, isVerified = true): Promise<void> {
    if (await this.#session.verifications.takeRoomEvent(event, room)) return
    const parsed = parse(event, room, this.#session.bot)
    if (!parsed) return
    const inbound = isVerified ? parsed : { ...parsed, unverified: true as const }
    if (this.#deliveries.length >= DELIVERIES_MAX) await this.settled()
    if (!inbound.overheardOnly && isAllowed(this.#config, inbound.sender)) this.#session.receipts.note(room, inbound.id)
    const delivery = this.#deliver(inbound)
    // `settled` reports the failure.
    delivery.catch(() => undefined)
    this.#deliveries.push(delivery)
  }

  /** Resolves once all events that were taken are durable. Rejects if one could not be stored; the sync is then repeated. */
  async settled(): Promise<void> {
    const deliveries = this.#deliveries
    this.#deliveries = []
    await untilAborted(Promise.all(deliveries), this.#signal, 'The channel stopped')
  }

  async #takeEncrypted(room: string, event: RoomEvent): Promise<void> {
    if (members(event.unsigned).redacted_because !== undefined) return
    await this.#session.device.track(event.sender)
    const decrypted = await this.#session.device.decrypt(event, room)
    if (decrypted.outcome === 'decrypted') {
      this.#session.problems.delete(room)
      return this.#takePlain(room, decrypted.event)
    }
    const { why } = decrypted
    const withheld = decrypted.outcome === 'waiting' ? decrypted.withheld : undefined
    const where = { channel: 'fedchat', room, event: event.event_id, sender: event.sender }
    if (decrypted.outcome === 'refused') return void this.#host.log.warn('message cannot be decrypted', { ...where, reason: why })
    if (withheld === undefined) this.#host.log.info('message waits for its key', { ...where, reason: why })
    else {
      this.#host.log.warn('the sender does not give the key of a message', { ...where, reason: withheld, fix: UNVERIFIED_FIX })
      this.#session.problems.set(room, `messages in ${room} cannot be read: ${withheld}`)
    }
    const dropped = this.#waiting.add({ room, session: decrypted.session, event, atMs: this.#host.clock.nowMs() })
    if (dropped) this.#onGap({ sinceMs: dropped.atMs, why: `too many messages in ${dropped.room} wait for their keys` })
  }

  /** Decrypts the events whose keys have arrived, and gives up the ones that have waited too long. */
  async retryWaiting(nowMs: number): Promise<void> {
    for (const { room, session, event } of this.#waiting.all()) {
      if (!this.#isNew && !this.#arrived.has(session)) continue
      const decrypted = await this.#session.device.decrypt(event, room)
      if (decrypted.outcome === 'waiting') continue
      if (decrypted.outcome === 'decrypted') await this.#takePlain(room, decrypted.event)
      await this.settled()
      this.#waiting.remove(event.event_id)
    }
    this.#isNew = false
    this.#arrived.clear()
    for (const { room, atMs } of this.#waiting.takeExpired(nowMs)) {
      this.#onGap({ sinceMs: atMs, why: `the key of a message in ${room} has not arrived for a week` })
    }
  }

  /** Joins an accepted room if an allowed user invites the bot, and declines every other invitation. */
  async takeInvite(room: string, invite: Members, signal: AbortSignal): Promise<void> {
    const { api, identity, rooms } = this.#session
    const events = list(members(invite.invite_state).events).map(members)
    const own = events.find(({ type, state_key: user }) => type === 'm.room.member' && user === identity.userId)
    const inviter = text(own?.sender)
    const isAccepted = rooms.isAccepted(room) && isAllowed(this.#config, inviter)
    const where = { channel: 'fedchat', room, inviter }
    try {
      await api.client('POST', isAccepted ? ['join', room] : ['rooms', room, 'leave'], { body: {}, signal })
      if (isAccepted) this.#session.problems.delete(room)
      this.#host.log.info(isAccepted ? 'joined a room' : 'declined an invitation', where)
    } catch (error) {
      if (signal.aborted) throw error
      this.#host.log.warn('invitation not answered', { ...where, reason: errorText(error) })
    }
  }
}
