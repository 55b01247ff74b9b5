/**
 * One connection in stream mode; see https://open.dingtalk.com/document/direction/stream-mode-protocol-access-description.
 * DingTalk promises to push a robot's message only once, so a message is kept here until it is stored.
 */
import { type Presence, storePatiently } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { FrameSocket } from '@sluice/kit/frame-socket'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import { type DingtalkApi, explain, isQuota } from './api.ts'
import { parse } from './parse.ts'

const MESSAGES = '/v1.0/im/bot/messages/get'
const OPEN = '/v1.0/gateway/connections/open'
const USER_AGENT = 'sluice/0.1'
const DINGTALK_HOST = /(?:^|\.)dingtalk\.com$/

export class Connection {
  readonly #host: Host
  readonly #api: DingtalkApi
  /** Settles when the messages that have arrived are stored: messages are stored in the order of arrival, across connections. */
  #stored: Promise<unknown> = Promise.resolve()
  readonly #presence: Presence

  constructor(host: Host, api: DingtalkApi, presence: Presence) {
    this.#host = host
    this.#api = api
    this.#presence = presence
  }

  /** See `Channel.listen`. When DingTalk announces the end of a connection, this one drains while the next one begins. */
  async listen(deliver: Deliver, context: ListenContext): Promise<void> {
    const { signal, report } = context
    try {
      const url = await this.#address(signal)
      const replaced = Promise.withResolvers<'replaced'>()
      const socket = await FrameSocket.open(url, {
        platform: 'dingtalk',
        clock: this.#host.clock,
        signal,
        onFrame: (frame, own) => this.#take(frame, own, () => replaced.resolve('replaced'), deliver, context),
      })
      report.connected()
      this.#presence.joined(report)
      void socket.ended.then(() => this.#presence.left())
      const ending = await Promise.race([socket.ended, replaced.promise])
      if (ending === 'replaced') {
        await Promise.race([report.replace(), socket.ended])
        await socket.drain()
      } else if (!signal.aborted) {
        throw new AppError('unavailable', `The connection to dingtalk was closed ${ending.detail}`.trim())
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  /** Registers a connection. Returns its address with a ticket, which is valid once and for 90 s. */
  async #address(signal: AbortSignal): Promise<string> {
    const { client_id: clientId, client_secret, api_url } = this.#api.config
    const body = { clientId, clientSecret: client_secret.reveal(), ua: USER_AGENT, subscriptions: [{ type: 'CALLBACK', topic: MESSAGES }] }
    const { status, json } = await this.#api.open(OPEN, body, signal)
    if (status !== 200) throw refusalToConnect(status, json)
    const { endpoint, ticket } = members(json)
    if (text(ticket) === '' || !isGateway(text(endpoint), api_url)) {
      throw new AppError('unavailable', 'dingtalk named an address for the connection that is not its own')
    }
    const url = new URL(text(endpoint))
    url.searchParams.set('ticket', text(ticket))
    return url.href
  }

  #take(frame: Members, socket: FrameSocket, onReplace: () => void, deliver: Deliver, context: ListenContext): Promise<void> | undefined {
    const headers = members(frame.headers)
    const topic = text(headers.topic)
    if (frame.type === 'SYSTEM') {
      // The answer repeats `data`, whose value DingTalk compares.
      if (topic === 'ping') socket.send({ code: 200, headers, message: 'OK', data: frame.data })
      if (topic === 'disconnect') onReplace()
      return undefined
    }
    context.report.event()
    const acknowledge = (data: object): void => {
      const answer = { contentType: 'application/json', messageId: text(headers.messageId) }
      socket.send({ code: 200, headers: answer, message: 'OK', data: JSON.stringify(data) })
    }
    if (frame.type === 'EVENT') acknowledge({ status: 'SUCCESS' })
    if (frame.type !== 'CALLBACK') return undefined
    const messages = topic === MESSAGES ? parse(parsedOrUndefined(text(frame.data)), { account: this.#api.config.client_id }) : []
    const stored = this.#stored.then(async () => {
      for (const inbound of messages) {
        if (!(await storePatiently(this.#host, { channel: 'dingtalk', inbound, deliver, signal: context.signal }))) return
      }
      acknowledge({ response: null })
    })
    this.#stored = stored
    return stored
  }
}

function refusalToConnect(status: number, json: unknown): AppError {
  const why = `dingtalk refused the connection: ${explain(json) ?? `status ${status}`}`
  if (isQuota(json)) return new AppError('rate_limited', why)
  return new AppError(
    'forbidden',
    `${why}. Check client_id and client_secret, and that the app has a robot in stream mode and is published`,
  )
}

/** The secret of the app is not sent to this address, but its messages come from there. */
function isGateway(endpoint: string, apiUrl: string): boolean {
  const url = URL.parse(endpoint)
  const api = URL.parse(apiUrl)
  if (!url || !api || url.username !== '') return false
  if (url.hostname === api.hostname) return url.protocol === 'wss:' || (url.protocol === 'ws:' && api.protocol === 'http:')
  return url.protocol === 'wss:' && DINGTALK_HOST.test(url.hostname)
}
