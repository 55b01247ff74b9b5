/** The intake: filters and classifies the messages that a channel received, stores them durably and queues them. */

import type { DeliveryConfig } from '@sluice/config'
import {
  AppError,
  type ApprovalKey,
  type Channel,
  type Clock,
  changeLane,
  chatCommandIn,
  commandLane,
  type Inbound,
  type Logger,
  type MessageKind,
  type RoomPlace,
  type Store,
  senderKey,
  typedText,
  type Verified,
  type WaitingMessage,
} from '@sluice/sdk'
import type { DeliveryApprovals, DeliveryFeatures, Procedures } from '../delivery-options.ts'
import { type Account, accountKey } from '../delivery-queue.ts'
import { observeReceived } from '../outbox/channel-health.ts'
import { codeIn } from '../people/codes.ts'
import type { People } from '../people/people.ts'
import { AllowedSenders } from './allowed-senders.ts'
import { isUnsignedDeletion } from './changes.ts'
import { commandIn } from './commands.ts'
import type { InboxWorker } from './inbox-worker.ts'
import { type Overheard, type OverheardLine, overheardLine } from './overheard.ts'
import { isProcedureEvent } from './procedures.ts'
import { wellFormed } from './read-message.ts'
import { isInRoom, isLeftOut, judgeInRoom, type Rooms } from './rooms.ts'
import { approvalReplyLane, sessionOf } from './sessions.ts'
import { standingOfSender } from './standing-of-sender.ts'

export interface IntakeOptions {
  readonly inbox: Pick<Store['inbox'], 'keep' | 'known'>
  readonly worker: Pick<InboxWorker, 'readyMs' | 'takesEarlyChanges'> & {
    /** Returns false for a message that is queued already, or that another process owns. */
    enter(row: WaitingMessage, message: Inbound): boolean
  }
  readonly approvals: Pick<DeliveryApprovals, 'matchReply' | 'answersAsOperator'>
  readonly clock: Clock
  readonly log: Logger
  config(): Pick<DeliveryConfig, 'max_pending' | 'max_queue_secs'>
  procedures(): Procedures | undefined
  agentOf: DeliveryFeatures['agentOf']
  readonly rooms: Pick<Rooms, 'at'>
  readonly overheard: Pick<Overheard, 'add' | 'change'>
  readonly people: Pick<People, 'refresh' | 'revoke' | 'standing'>
  /** Returns the senders of a channel who are operators. */
  operators(channel: string): readonly string[]
}

/** One request of a channel, or one message that a channel fetched. */
export interface Received {
  /** See `Arrival.raw`. */
  readonly raw: Uint8Array | null
  readonly verified: Verified
  readonly receivedAtMs: number
  readonly messages: readonly Inbound[]
  /** Stored with each message; see `Arrival.trace`. */
  readonly trace?: string | undefined
}

/** Counts of messages. `kept` and `duplicate` are both 0 when the request had no message for the agent. */
export interface Reception {
  readonly kept: number
  readonly duplicate: number
  readonly denied: number
}

const RETRY_AFTER_SECS = 30
/** A request with a nonce is refused when it comes again within this time. */
const NONCE_MS = 1_000_000
/** The room beyond `max_pending` for replies to approvals, which waiting messages may wait for, and for commands and changes. */
const OTHERS_MAX = 1000
const NO_MESSAGES: Reception = { kept: 0, duplicate: 0, denied: 0 }

/** A message with its class and its lane. */
interface Classified {
  readonly message: Inbound
  readonly kind: MessageKind
  /** The lane of the message. It is the session of its turn, except for a reply to an approval and for a command that overtakes. */
  readonly session: string
  readonly approval?: ApprovalKey
  /** The key of its account. */
  readonly account: string
}

export class Intake {
  readonly #options: IntakeOptions
  readonly #senders: AllowedSenders
  /** Messages that wait or run, by account; bounded by the number of accounts. */
  readonly #pending = new Map<string, number>()

  constructor(options: IntakeOptions) {
    this.#options = options
    this.#senders = new AllowedSenders(options)
  }

  /**
   * Resolves once every message from an allowed sender is durable. Throws `unauthorized` for a request whose nonce was used
   * before, and `unavailable` when too many messages of an account wait, one has waited too long, or the store fails: then
   * nothing of the request is stored.
   */
  async receive(channel: Channel, received: Received): Promise<Reception> {
    const { verified } = received
    if (received.messages.length > 0) observeReceived(channel, received.receivedAtMs)
    // People of a room who are not allowed and say nothing to the bot are not worth a log line.
    const messages = received.messages.filter(({ overheardOnly, sender }) => !overheardOnly || this.#senders.admits(channel, sender))
    const allowed: Inbound[] = []
    for (const message of messages)
      if (isUnsignedDeletion(message) || this.#senders.admit(channel, message.sender)) allowed.push(wellFormed(message))
    const denied = messages.length - allowed.length
    const admitted = allowed.some(isChange) ? await this.#withKnownTargets(channel, allowed, received.receivedAtMs) : allowed
    if (admitted.length === 0 && verified.nonce === undefined) return { ...NO_MESSAGES, denied }
    const classified: Classified[] = []
    for (const message of admitted) classified.push(...(await this.#classify(channel, message, received.receivedAtMs)))
    if (classified.length === 0 && verified.nonce === undefined) return { ...NO_MESSAGES, denied }
    if (!this.#lacksRoom(classified)) return this.#store(channel, received, classified, { duplicate: 0, denied })
    const fresh = await this.#unknown(channel, classified)
    const duplicate = classified.length - fresh.length
    if (fresh.length === 0 && duplicate > 0 && verified.nonce === undefined) return { kept: 0, duplicate, denied }
    return this.#store(channel, received, fresh, { duplicate, denied })
  }

  /**
   * Stores a message that the daemon sends itself in the name of a sender, as a turn of this session, once for its id. Resolves to false
   * when the sender is not allowed. Throws `unavailable` as `receive` does.
   */
  async deliver(channel: Channel, message: Inbound, session: string, receivedAtMs: number): Promise<boolean> {
    if (!this.#senders.admit(channel, message.sender)) return false
    const account = accountKey({ channel: channel.name, account: message.account })
    const classified: readonly Classified[] = [{ message, kind: 'turn', session, account }]
    const fresh = this.#lacksRoom(classified) ? await this.#unknown(channel, classified) : classified
    await this.#store(channel, { raw: null, verified: { by: 'reminder' }, receivedAtMs, messages: [message] }, fresh, NO_MESSAGES)
    return true
  }

  /** Call it for each stored message that begins to wait in the worker. */
  entered(account: Account): void {
    this.#count(accountKey(account), 1)
  }

  /** Call it for each message that has left the worker. */
  left(account: Account): void {
    this.#count(accountKey(account), -1)
  }

  /** Resolves to no message for one of a room that runs no turn. It is kept for the next turn of the room, or dropped. */
  async #classify(channel: Channel, message: Inbound, receivedAtMs: number): Promise<readonly Classified[]> {
    const place = placeOf(channel, message)
    const room = isInRoom(message) ? await this.#options.rooms.at(place) : undefined
    const own = sessionOf(room?.rule.agent ?? this.#options.agentOf(place), channel.name, message, room?.isShared ?? false)
    const account = accountKey({ channel: channel.name, account: message.account })
    const shownCode = room ? linkCodeIn(message) : undefined
    if (shownCode !== undefined) await this.#options.people.revoke(shownCode)
    if (message.changes) return [{ message, kind: 'change', session: changeLane(own), account }]
    const verdict = room ? judgeInRoom(channel, room, message) : 'turn'
    const isForAgent = verdict === 'turn' || verdict === 'judge'
    const command = message.pressed || !isForAgent ? undefined : commandIn(typedText(message))
    if (command) return [{ message, kind: 'command', session: commandLane(own), account }]
    const { approvals, rooms } = this.#options
    const approval = message.pressed || message.overheardOnly ? undefined : await approvals.matchReply(channel, message)
    if (approval || message.pressed) {
      // A press does not say whether it is in a room.
      const pressedIn = message.pressed ? await rooms.at(place) : room
      if (pressedIn && isLeftOut(channel, pressedIn, message) && !(await approvals.answersAsOperator(channel, message, approval))) return []
      const session = approvalReplyLane(channel.name, approval, message)
      return [{ message, kind: 'approval_reply', session, account, ...(approval && { approval }) }]
    }
    if (verdict === 'overheard' && shownCode === undefined)
      await this.#options.overheard.add(own, await this.#overheardLine(channel, message, receivedAtMs), {
        isFoundWithoutThread: channel.changesLackThread ?? false,
      })
    if (!isForAgent) return []
    const kind = isProcedureEvent(this.#options.procedures(), channel) ? 'procedure_event' : 'turn'
    return [{ message, kind, session: own, account }]
  }

  /**
   * Leaves out the changes of messages that have not arrived and will not be stored, such as those that are not for the bot. The messages
   * of all other changes may still arrive.
   */
  async #withKnownTargets(channel: Channel, messages: readonly Inbound[], receivedAtMs: number): Promise<readonly Inbound[]> {
    const targets = messages.map(({ account, id, changes }) => ({ account, id: changes?.message ?? id }))
    const known = await this.#options.inbox.known(channel.name, targets)
    const kept: Inbound[] = []
    for (const [index, message] of messages.entries()) {
      if (!isChange(message) || known[index]) kept.push(message)
      else if (!(await this.changesOverheard(channel, message, receivedAtMs)) && (await this.#isWaitedFor(channel, message)))
        kept.push(message)
    }
    return kept
  }

  /** Whether a change of an unknown message is kept until the message arrives. Nothing that a room drops is written to the store. */
  async #isWaitedFor(channel: Channel, message: Inbound): Promise<boolean> {
    if (isUnsignedDeletion(message) || !this.#options.worker.takesEarlyChanges) return false
    return !isInRoom(message) || judgeInRoom(channel, await this.#options.rooms.at(placeOf(channel, message)), message) !== 'ignored'
  }

  /** Carries out the change of a message that was overheard. Resolves to whether it was. */
  async changesOverheard(channel: Channel, message: Inbound, receivedAtMs: number): Promise<boolean> {
    const { changes } = message
    if (!changes) return false
    const place = placeOf(channel, message)
    const room = await this.#options.rooms.at(place)
    const session = sessionOf(room.rule.agent ?? this.#options.agentOf(place), channel.name, message, true)
    const shownCode = linkCodeIn(message)
    // As in a message of its own, the words of a code are not kept, nor those of a person whom the rule leaves out.
    const isRemoved = shownCode !== undefined || isLeftOut(channel, room, message)
    const written = changes.what === 'deleted' ? undefined : await this.#overheardLine(channel, message, receivedAtMs)
    const edit = written && isRemoved ? { ...written, text: '' } : written
    const isOverheard = await this.#options.overheard.change(session, changes.message, edit, {
      lacksThread: channel.changesLackThread ?? false,
    })
    if (shownCode !== undefined && (isOverheard || isInRoom(message))) await this.#options.people.revoke(shownCode)
    return isOverheard
  }

  async #overheardLine(channel: Channel, message: Inbound, receivedAtMs: number): Promise<OverheardLine> {
    const { people, operators } = this.#options
    await people.refresh()
    const standing = people.standing(senderKey(channel.name, message), standingOfSender(channel, message, operators(channel.name)))
    return overheardLine(message, standing, receivedAtMs)
  }

  #lacksRoom(messages: readonly Classified[]): boolean {
    return this.#isFull(messages) || this.#isLate(messages)
  }

  /** Known messages need no room. Resolves to the others; rejects with `unavailable` if there is no room for them. */
  async #unknown(channel: Channel, messages: readonly Classified[]): Promise<readonly Classified[]> {
    const known = await this.#options.inbox.known(
      channel.name,
      messages.map(({ message }) => message),
    )
    const fresh = messages.filter((_, index) => !known[index])
    if (this.#isFull(fresh)) throw noRoom('Too many messages of this account wait for their turn')
    if (this.#isLate(fresh)) throw noRoom('Messages of this account have waited too long for their turn')
    return fresh
  }

  #isFull(messages: readonly Classified[]): boolean {
    const { max_pending } = this.#options.config()
    return this.#exceeds(messages.filter(needsTurn), max_pending) || this.#exceeds(messages, max_pending + OTHERS_MAX)
  }

  /** A request with more messages than the limit is accepted when nothing else of its account waits: it would never have room. */
  #exceeds(messages: readonly Classified[], max: number): boolean {
    const wanted = new Map<string, number>()
    for (const { account } of messages) wanted.set(account, (wanted.get(account) ?? 0) + 1)
    return [...wanted].some(([account, more]) => {
      const waiting = this.#pending.get(account) ?? 0
      return waiting > 0 && waiting + more > max
    })
  }

  /** Whether turns of an account of these messages have been ready for longer than `max_queue_secs`. */
  #isLate(messages: readonly Classified[]): boolean {
    const { max_queue_secs } = this.#options.config()
    return messages.some((one) => needsTurn(one) && this.#options.worker.readyMs(one.account) > max_queue_secs * 1000)
  }

  /** Stores the messages and queues the new ones. `others` counts the messages of the request that are not in the list. */
  async #store(
    channel: Channel,
    { raw, verified, receivedAtMs, trace }: Received,
    messages: readonly Classified[],
    others: Pick<Reception, 'duplicate' | 'denied'>,
  ): Promise<Reception> {
    const written = this.#options.inbox.keep({
      channel: channel.name,
      verdict: verified.by,
      raw,
      receivedAtMs,
      ...(verified.nonce !== undefined && { nonce: { value: verified.nonce, untilMs: receivedAtMs + NONCE_MS } }),
      trace,
      messages,
    })
    // Counted before the write ends, so that requests in parallel see each other.
    for (const { account } of messages) this.#count(account, 1)
    let numbers: readonly (number | null)[]
    try {
      const result = await written
      if (result === 'replayed')
        throw new AppError('unauthorized', 'Invalid signature', { cause: 'the nonce of the request was used before' })
      numbers = result
    } catch (error) {
      for (const { account } of messages) this.#count(account, -1)
      throw error
    }
    let kept = 0
    for (const [index, classified] of messages.entries()) {
      const number = numbers[index] ?? null
      if (number !== null) kept++
      if (number === null || !this.#enter(channel, number, classified)) this.#count(classified.account, -1)
    }
    return { kept, duplicate: others.duplicate + messages.length - kept, denied: others.denied }
  }

  #enter(channel: Channel, number: number, { message, session, kind }: Classified): boolean {
    const { account, sender } = message
    const row = { number, channel: channel.name, account, sender, lane: session, atMs: 0, interruptions: 0, kind }
    return this.#options.worker.enter(row, message)
  }

  #count(account: string, change: number): void {
    const next = (this.#pending.get(account) ?? 0) + change
    if (next > 0) this.#pending.set(account, next)
    else this.#pending.delete(account)
  }
}

const placeOf = ({ name }: Channel, { account, to }: Inbound): RoomPlace => ({ channel: name, account, conversation: to.to })

/** The name of another bot behind a command. */
const OTHER_BOT = /^(\s*\/link)@\S{1,100}/i

/** Returns the code that a message types to link accounts, also to another bot. In a room others read it, whether the message is for the bot or not. */
function linkCodeIn(message: Inbound): string | undefined {
  const command = chatCommandIn(typedText(message).replace(OTHER_BOT, '$1'))
  return command?.name === 'link' && codeIn(command.words) !== undefined ? command.words : undefined
}

const needsTurn = ({ kind }: Classified): boolean => kind !== 'approval_reply' && kind !== 'change' && kind !== 'command'

const isChange = ({ changes }: Inbound): boolean => changes !== undefined

const noRoom = (detail: string): AppError => new AppError('unavailable', detail, { retryAfterSecs: RETRY_AFTER_SECS })
