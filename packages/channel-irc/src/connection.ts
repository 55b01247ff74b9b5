/** One connection: registers, enters the channels, reads what was missed, and takes messages until it ends. */
import { type Cursors, endsWithin, SerialQueue } from '@sluice/kit'
import { type Address, AppError, type Deliver, type Host, type ListenContext, type Outbound, type Sent } from '@sluice/sdk'
import type { IrcConfig } from './config.ts'
import { readMissed } from './history.ts'
import { Intake } from './intake.ts'
import { Link } from './link.ts'
import { accountOf, parse, timeOf } from './parse.ts'
import { register } from './register.ts'
import { Pace, sendMessage } from './send.ts'
import { Session } from './session.ts'
import type { Line } from './wire.ts'

/** Messages that waited longer are not read: an answer would come too late. */
const MISSED_MS_MAX = 3_600_000
/** Clocks differ, and messages may arrive late. Repeats are dropped by their id. */
const OVERLAP_MS = 10_000
const ENTER_MS = 10_000
/** A message that is not confirmed by then may be ambiguous. */
const LEAVE_MS = 5000
const SENDS_MAX = 1000

export class Connection {
  readonly #host: Host
  readonly #config: IrcConfig
  readonly #cursors: Cursors
  readonly #account: string
  readonly #pace: Pace
  readonly #sending = new SerialQueue({ name: 'the irc server', tasksMax: SENDS_MAX })
  #session: Session | undefined
  /** Resolves when the message that is being sent has an outcome. */
  #underWay: Promise<unknown> = Promise.resolve()
  /** Takes the messages of all connections until `signal` aborts. */
  #intake: { readonly signal: AbortSignal; readonly intake: Intake } | undefined
  /** Keeps the position where it is until the missed messages are read. */
  #release: (() => void) | undefined

  constructor(host: Host, config: IrcConfig, cursors: Cursors) {
    this.#host = host
    this.#config = config
    this.#cursors = cursors
    this.#account = accountOf(config)
    this.#pace = new Pace(host.clock, config.send_interval_ms)
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { clock } = this.#host
    const { signal, report } = context
    const intake = this.#intakeFor(deliver, signal)
    const since = this.#cursors.get(this.#account)?.after
    this.#release ??= this.#cursors.hold()
    intake.hold()
    const over = new AbortController()
    let link: Link | undefined
    const stop = (): void => (link ? void this.#leave(link) : over.abort())
    signal.addEventListener('abort', stop, { once: true })
    try {
      link = await Link.open(this.#config, clock, over.signal)
      if (signal.aborted) return
      const session = new Session(link, this.#config, {
        onLine: (line) => this.#take(line, session, intake, context),
        onProblem: (detail) => report.problem(detail),
      })
      const registered = await register(link, this.#config, clock)
      session.begin(registered, clock)
      await endsWithin(session.entered, ENTER_MS, clock, link.signal)
      if (link.signal.aborted) throw await link.closed
      report.connected()
      session.reportProblem()
      if (!signal.aborted) this.#session = session
      this.#catchUp(session, intake, since, context)
      throw await link.closed
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', stop)
      this.#session = undefined
      over.abort()
      if (signal.aborted) await intake.settled()
    }
  }

  /** See `Channel.send`. Messages go out one after another, in the order of the calls. */
  send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    return this.#sending.run(() => {
      const sending = sendMessage(this.#connected(), this.#pace, to, message, { clock: this.#host.clock, signal })
      this.#underWay = sending.catch(() => undefined)
      return sending
    }, signal)
  }

  /** Ends the connection once the message that is being sent is confirmed; later ones are refused meanwhile. */
  async #leave(link: Link): Promise<void> {
    this.#session = undefined
    await endsWithin(this.#underWay, LEAVE_MS, this.#host.clock, link.signal)
    link.quit()
  }

  /** See `Channel.typing` and https://ircv3.net/specs/client-tags/typing. Shows nothing while messages wait for their turn. */
  async typing({ to }: Address): Promise<void> {
    const session = this.#session
    if (session?.has('message-tags') && (!session.isChannel(to) || session.isIn(to)) && /^[^\s,:]+$/.test(to) && this.#pace.takeSpare()) {
      session.link.send(`@+typing=active TAGMSG ${to}`)
    }
  }

  #connected(): Session {
    if (!this.#session) throw new AppError('unavailable', 'The irc server is not connected')
    return this.#session
  }

  #intakeFor(deliver: Deliver, signal: AbortSignal): Intake {
    if (this.#intake?.signal !== signal)
      this.#intake = { signal, intake: new Intake(this.#host, this.#cursors, this.#account, deliver, signal) }
    return this.#intake.intake
  }

  #take(line: Line, session: Session, intake: Intake, { report }: ListenContext): void {
    const atMs = timeOf(line) ?? this.#host.clock.nowMs()
    const inbound = this.#parse(line, session)
    if (!inbound) return void intake.seen(atMs)
    report.event()
    const taken = intake.takeNew(inbound, atMs)
    if (intake.isOverfull) return void session.link.break('because too many messages wait')
    if (!intake.isFull) return
    session.link.pause()
    void taken.then(() => session.link.resume())
  }

  #parse(line: Line, session: Session) {
    const bot = {
      account: this.#account,
      nick: session.nick,
      config: this.#config,
      isChannel: (target: string) => session.isChannel(target),
    }
    return parse(line, bot, () => `once:${crypto.randomUUID()}`)
  }

  /** Reads what was missed, or reports the time of which the server kept nothing. */
  #catchUp(session: Session, intake: Intake, since: string | undefined, context: ListenContext): void {
    const { clock } = this.#host
    const { report } = context
    if (since === undefined) this.#cursors.follow(this.#account, { after: String(clock.nowMs()) })
    const sinceMs = since === undefined ? undefined : Number(since)
    if (sinceMs === undefined || !session.keepsHistory) {
      if (sinceMs !== undefined) report.gap({ sinceMs, why: 'the server keeps no messages for a bot that is not connected' })
      this.#caughtUp(intake)
      return
    }
    void context.catchUp(async () => {
      // A later connection reads the same messages, and more.
      if (this.#session !== session) return
      const oldestMs = clock.nowMs() - MISSED_MS_MAX
      if (sinceMs < oldestMs) report.gap({ sinceMs, why: 'messages that are more than an hour old are not read' })
      const { lines, refused } = await readMissed(session, this.#config.channels, Math.max(sinceMs - OVERLAP_MS, oldestMs), clock)
      for (const line of lines) {
        const inbound = this.#parse(line, session)
        if (inbound) await intake.take(inbound, timeOf(line) ?? sinceMs)
      }
      if (refused.length > 0) report.gap({ sinceMs, why: `the server did not show all messages (${refused.join('; ')})` })
      // The task of a connection that has ended must not let the messages of the next one overtake the missed ones.
      if (this.#session === session && !context.signal.aborted) this.#caughtUp(intake)
    })
  }

  #caughtUp(intake: Intake): void {
    intake.release()
    this.#release?.()
    this.#release = undefined
  }
}
