/**
 * The long connection of an AI bot: brings messages, and takes requests that are answered by frames. See
 * https://developer.work.weixin.qq.com/document/path/101463. WeCom asks for no acknowledgement of a message, so a message is kept here
 * until it is stored.
 */
import { type Presence, storePatiently } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { FrameSocket } from '@sluice/kit/frame-socket'
import { AppError, type Deliver, type Host, type Inbound, type ListenContext } from '@sluice/sdk'
import { explain, refusalOf } from './api.ts'
import type { WecomConfig } from './config.ts'
import { parseBot, parsePress } from './parse-bot.ts'

const SUBSCRIBE = 'aibot_subscribe'
const MESSAGE = 'aibot_msg_callback'
const EVENT = 'aibot_event_callback'
const PING_MS = 30_000
/** Two pings without an answer. */
const SILENT_MS = 70_000
const ANSWER_MS_MAX = 15_000
/** Requests that wait for their answer. */
const REQUESTS_MAX = 1000

interface Waiting {
  resolve(answer: Members): void
  reject(error: AppError): void
}

export class BotConnection {
  readonly #host: Host
  readonly #config: WecomConfig
  readonly #presence: Presence
  #socket: FrameSocket | undefined
  readonly #waiting = new Map<string, Waiting>()
  /** Settles when the messages that have arrived are stored: they are stored in the order of arrival, across connections. */
  #stored: Promise<unknown> = Promise.resolve()

  constructor(host: Host, config: WecomConfig, presence: Presence) {
    this.#host = host
    this.#config = config
    this.#presence = presence
  }

  /** See `Channel.listen`. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    const refused = Promise.withResolvers<never>()
    refused.promise.catch(() => undefined)
    let socket: FrameSocket | undefined
    let isJoined = false
    try {
      socket = await FrameSocket.open(this.#config.ws_url, {
        platform: 'wecom',
        clock: this.#host.clock,
        signal,
        onFrame: (frame) => this.#take(frame, refused.reject, deliver, context),
        onPing: (own) => own.send({ cmd: 'ping', headers: { req_id: requestId('ping') } }),
        pingMs: PING_MS,
        silentMs: SILENT_MS,
      })
      const ended = socket.ended.then(({ detail }) => {
        throw new AppError('unavailable', `The connection to wecom was closed ${detail}`.trim())
      })
      ended.catch(() => undefined)
      await Promise.race([this.#subscribe(socket), ended])
      this.#socket = socket
      report.connected()
      this.#presence.joined(report)
      isJoined = true
      await Promise.race([ended, refused.promise])
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      if (isJoined) this.#presence.left()
      socket?.close()
      if (this.#socket === socket) this.#lose()
    }
  }

  /**
   * Sends a request, and resolves to its answer. `id` is that of the message that is answered. Throws as `Channel.send` does: without an
   * answer, WeCom may have executed the request.
   */
  async request(cmd: string, body: object, signal: AbortSignal, id = requestId(cmd)): Promise<Members> {
    const socket = this.#socket
    if (!socket?.isOpen) throw new AppError('unavailable', 'wecom is not connected')
    if (this.#waiting.size >= REQUESTS_MAX || this.#waiting.has(id))
      throw new AppError('unavailable', 'Too many requests to wecom wait for an answer')
    const answer = await this.#exchange(socket, { cmd, headers: { req_id: id }, body }, id, signal)
    const refusal = refusalOf(cmd, answer)
    if (refusal) throw refusal
    return answer
  }

  async #subscribe(socket: FrameSocket): Promise<void> {
    const { bot_id, bot_secret } = this.#config
    const id = requestId(SUBSCRIBE)
    const body = { bot_id, secret: bot_secret?.reveal().trim() }
    const answer = await this.#exchange(socket, { cmd: SUBSCRIBE, headers: { req_id: id }, body }, id, new AbortController().signal).catch(
      (error: unknown) => {
        // Nothing but the connection is at stake.
        throw error instanceof AppError ? new AppError('unavailable', error.message) : error
      },
    )
    if (answer.errcode === 0) return
    const refusal = refusalOf(SUBSCRIBE, answer)
    if (refusal?.code === 'rate_limited' || answer.errcode === -1) throw refusal
    throw new AppError('forbidden', `wecom refused the bot: ${explain(answer) ?? 'no reason given'}. Check bot_id and bot_secret`)
  }

  async #exchange(socket: FrameSocket, frame: object, id: string, signal: AbortSignal): Promise<Members> {
    const answered = Promise.withResolvers<Members>()
    const over = new AbortController()
    this.#waiting.set(id, answered)
    const abort = (): void => answered.reject(new AppError('aborted', 'The request to wecom was cut off'))
    signal.addEventListener('abort', abort, { once: true })
    try {
      if (signal.aborted) abort()
      else socket.send(frame)
      void this.#host.clock.sleep(ANSWER_MS_MAX, over.signal).then(() => {
        answered.reject(new AppError('upstream_timeout', `wecom did not answer within ${ANSWER_MS_MAX / 1000} s`))
      })
      return await answered.promise
    } finally {
      over.abort()
      signal.removeEventListener('abort', abort)
      this.#waiting.delete(id)
    }
  }

  #lose(): void {
    this.#socket = undefined
    for (const { reject } of this.#waiting.values()) reject(new AppError('upstream', 'The connection to wecom broke before the answer'))
  }

  #take(frame: Members, refuse: (error: AppError) => void, deliver: Deliver, context: ListenContext): Promise<void> | undefined {
    const id = text(members(frame.headers).req_id)
    const body = members(frame.body)
    if (frame.cmd === MESSAGE) {
      const options = { botId: this.#config.bot_id ?? '', request: id, nowMs: this.#host.clock.nowMs() }
      return this.#store(parseBot(body, options), deliver, context)
    }
    if (frame.cmd === EVENT) {
      if (members(body.event).eventtype === 'disconnected_event') {
        refuse(
          new AppError('forbidden', 'Another program connected with the same bot_id, and wecom allows one connection: stop one of them'),
        )
        return undefined
      }
      return this.#store(parsePress(body, this.#config.bot_id ?? ''), deliver, context)
    }
    this.#waiting.get(id)?.resolve(frame)
    return undefined
  }

  #store(messages: readonly Inbound[], deliver: Deliver, { report, signal }: ListenContext): Promise<void> {
    report.event()
    const stored = this.#stored.then(async () => {
      for (const inbound of messages) await storePatiently(this.#host, { channel: 'wecom', inbound, deliver, signal })
    })
    this.#stored = stored
    return stored
  }
}

const requestId = (cmd: string): string => `${cmd}_${crypto.randomUUID()}`
