/** Sends messages, at the pace that servers accept, and finds out whether the server took them. */
import { signalScope, untilAborted } from '@sluice/kit'
import { type Address, AppError, type Clock, type ErrorCode, type Outbound, type Sent } from '@sluice/sdk'
import type { Session } from './session.ts'
import { linesOf } from './text.ts'
import { folded, type Line, tagText } from './wire.ts'

const ANSWER_MS = 30_000
const BURST = 4
/**
 * A target is one word; a comma would name two, and `$` and `@` begin targets that reach many people. Only `@` before a channel is allowed, which
 * reaches fewer.
 */
const TARGET = /^(?:@(?=[#&]))?[^\s,:$@\p{Cc}][^\s,\p{Cc}]{0,199}$/u
/** What servers answer to a message that they do not deliver. See RFC 2812, section 3.3.1, and https://modern.ircdocs.horse. */
const REFUSALS: Readonly<Record<string, ErrorCode>> = {
  263: 'rate_limited',
  401: 'invalid_request',
  403: 'invalid_request',
  404: 'forbidden',
  407: 'invalid_request',
  411: 'invalid_request',
  412: 'invalid_request',
  413: 'invalid_request',
  417: 'invalid_request',
  439: 'rate_limited',
  477: 'forbidden',
  486: 'forbidden',
  531: 'forbidden',
  716: 'forbidden',
}

/** Four lines at once and then one in each interval, as the flood limits of servers allow. */
export class Pace {
  readonly #clock: Clock
  readonly #intervalMs: number
  /** The time at which the allowance is full again. */
  #fullAtMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock
    this.#intervalMs = intervalMs
  }

  /** Takes a line from the allowance if that leaves one for a message. */
  takeSpare(): boolean {
    const isSpare = this.#fullAtMs - this.#clock.monotonicMs() < (BURST - 2) * this.#intervalMs
    if (isSpare) this.#take()
    return isSpare
  }

  async wait(signal: AbortSignal): Promise<void> {
    const waitMs = this.#fullAtMs - this.#clock.monotonicMs() - (BURST - 1) * this.#intervalMs
    this.#take()
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal)
  }

  #take(): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, this.#clock.monotonicMs()) + this.#intervalMs
  }
}

/** Implements `Channel.send` on a registered connection. */
export async function sendMessage(
  session: Session,
  pace: Pace,
  to: Address,
  { text, clientId }: Pick<Outbound, 'text' | 'clientId'>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Sent> {
  if (!TARGET.test(to.to)) throw new AppError('invalid_request', 'The address is neither a nick nor a channel of irc')
  if (session.isChannel(to.to) && !session.isIn(to.to)) throw new AppError('unavailable', `The bot is not in ${to.to}`)
  const addressed = to.more?.nick === undefined ? text : `${to.more.nick}: ${text}`
  const lines = linesOf(addressed, session.roomFor(to.to))
  if (lines.length === 0) throw new AppError('invalid_request', 'The message has no text that irc can show')
  const tags = session.has('message-tags') ? tagText({ '+draft/reply': to.replyTo }) : ''
  using delivery = new Delivery(session, to.to)
  for (const [index, line] of lines.entries()) {
    await pace.wait(signal)
    if (signal.aborted || session.link.signal.aborted) throw notSent(index, signal)
    session.link.send(`${tags}PRIVMSG ${to.to} :${line}`)
    // The first line shows whether the server takes messages for this target, before more than one can be lost.
    if (index === 0 || index === lines.length - 1) await delivery.confirm(index, clock, signal)
  }
  return { id: delivery.id ?? `sent:${clientId}` }
}

function notSent(linesSent: number, signal: AbortSignal): AppError {
  if (linesSent > 0) return new AppError('upstream', `The connection to the irc server ended after ${linesSent} lines of the message`)
  return signal.aborted
    ? new AppError('aborted', 'The message was not sent')
    : new AppError('unavailable', 'The connection to the irc server ended')
}

/** The answers to one message. A server answers in order, so the answer to a PING confirms the lines before it. */
class Delivery implements Disposable {
  readonly #session: Session
  readonly #target: string
  readonly #stop: () => void
  readonly #token = crypto.randomUUID()
  #refusal: AppError | undefined
  #pong = Promise.withResolvers<void>()
  /** The id that the server gave to the first line. */
  id: string | undefined

  constructor(session: Session, target: string) {
    this.#session = session
    this.#target = folded(target)
    this.#stop = session.link.onLine((line) => this.#take(line))
  }

  [Symbol.dispose](): void {
    this.#stop()
  }

  async confirm(linesBefore: number, clock: Clock, signal: AbortSignal): Promise<void> {
    const { link } = this.#session
    using limit = signalScope([link.signal, signal], ANSWER_MS, clock)
    this.#pong = Promise.withResolvers()
    link.send(`PING :${this.#token}`)
    try {
      await untilAborted(this.#pong.promise, limit.signal, 'The irc server did not confirm the message')
    } catch (error) {
      throw new AppError('upstream', 'The irc server did not confirm the message', { cause: error })
    }
    if (!this.#refusal) return
    if (linesBefore === 0) throw this.#refusal
    throw new AppError('upstream', `A part of the message was refused: ${this.#refusal.message}`)
  }

  #take({ command, params, nick, tags }: Line): void {
    if (command === 'PONG' && params.at(-1) === this.#token) this.#pong.resolve()
    else if (command === 'PRIVMSG' && folded(nick) === folded(this.#session.nick) && folded(params[0] ?? '') === this.#target) {
      this.id ??= tags.get('msgid')
    } else this.#takeRefusal(command, params)
  }

  #takeRefusal(command: string, params: readonly string[]): void {
    const isOurs = command === '263' || command === '411' || command === '412' || folded(params[1] ?? '') === this.#target
    const code = Object.hasOwn(REFUSALS, command) && isOurs ? REFUSALS[command] : undefined
    const reason = (params.at(-1) ?? '').slice(0, 200)
    if (code) this.#refusal ??= new AppError(code, `The irc server refused the message (${command}): ${reason}`)
  }
}
