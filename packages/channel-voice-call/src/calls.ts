/** The calls that go on: who may call, what each request of the provider is answered, and when a call ends. */
import { every, signalScope, storePatiently } from '@sluice/kit'
import { members, text, textAt } from '@sluice/kit/foreign-json'
import {
  type Address,
  AppError,
  type Clock,
  type Deliver,
  equalTexts,
  errorText,
  type FeatureSocket,
  hmacSha256,
  isAllowed,
  type KeyValue,
  type Logger,
  type Outbound,
  type Raw,
  type Sent,
  type SocketListener,
} from '@sluice/sdk'
import type { VoiceCallConfig } from './config.ts'
import { MediaSession, type MediaSessionOptions } from './media-session.ts'
import type { Provider } from './provider.ts'
import { type CallEvent, callerOf, type Instruction, type Parties, STREAM_PATH } from './telephony.ts'
import { Usage } from './usage.ts'

const LOOK_MS = 1000
const REQUEST_MS = 10_000
const PRUNE_MS = 3_600_000
/**
 * A provider that asks again and again has ended a call for which it does not ask for this time, and for the time of the last text: it
 * reports the end of a call only if the operator has set the URL for that.
 */
const QUIET_MS = 180_000
const SPOKEN_MS_PER_CHAR = 100
/** The provider connects a media stream, or connects it again, within this time. */
const CONNECT_MS = 30_000
/** After the end of a media stream, the provider reports the end of its call within this time, if the call has ended. */
const HANGUP_REPORT_MS = 3000
/** Texts that wait for the provider, and the ids of calls that have ended, are forgotten after this time. */
const KEPT_MS = 24 * 3_600_000
const KEPT_MAX = 1000
/** A longer utterance is recognised in parts. */
const UTTERANCE_MS_MAX = 60_000
/** After this many silences in a row the call is ended. */
const SILENCES_MAX = 2

export interface CallsOptions {
  readonly config: VoiceCallConfig
  readonly provider: Provider
  readonly clock: Clock
  readonly log: Logger
  readonly keyValue: KeyValue
  /** What a media stream needs; undefined while [transcription] or [speech] is off. */
  audio(): Pick<MediaSessionOptions, 'speak' | 'transcribe' | 'workspace'> | undefined
  /** Names a call that is placed. Unique. */
  newToken(): string
}

interface LiveCall {
  readonly parties: Parties
  readonly startedAtMs: number
  session?: MediaSession
  /** When something was last heard or spoken on the media stream. */
  activeAtMs: number
  silences: number
  utterances: number
  /** How many media streams were connected: each has a token of its own. */
  streams: number
  /** The provider was asked to connect the media stream again, and has not done so. */
  isReconnecting?: true
  /** The call is over if the provider is not heard of until then. */
  expectedByMs?: number
  /** When the provider was asked to end the call. */
  endingAtMs?: number
  /** The words that the call begins with, until they are spoken. */
  firstWords?: string
}

export class Calls {
  readonly #options: CallsOptions
  readonly #usage: Usage
  readonly #live = new Map<string, LiveCall>()
  readonly #closed = new AbortController()
  #deliver: Deliver | undefined

  constructor(options: CallsOptions) {
    this.#options = options
    const { config, keyValue } = options
    this.#usage = new Usage({
      keyValue,
      secsMax: config.max_minutes_per_day && config.max_minutes_per_day * 60,
      usdPerMinute: config.usd_per_minute,
      usdMax: config.max_usd_per_day,
    })
  }

  /** Reads the calls that went on when the daemon ended, and begins to watch their limits. */
  async open(): Promise<void> {
    const { clock, config, keyValue, log, provider } = this.#options
    for (const { key, value } of await keyValue.list('call/', KEPT_MAX)) {
      const parties = partiesIn(key.slice('call/'.length), value)
      const { startedAtMs, streams } = members(value)
      if (!parties || typeof startedAtMs !== 'number') await keyValue.delete(key)
      else {
        const call = this.#remember(parties, startedAtMs)
        call.streams = typeof streams === 'number' ? streams : 0
        if (provider.asksAgain) call.expectedByMs = this.#nowMs() + QUIET_MS
        else if (config.audio === 'stream') call.expectedByMs = this.#nowMs()
        if (textAt(value, 'firstWords') !== '') call.firstWords = textAt(value, 'firstWords')
      }
    }
    await this.#prune()
    void every(clock, LOOK_MS, this.#closed.signal, () =>
      this.#enforce().catch((error: unknown) => log.warn('the limits of calls could not be checked', { error: errorText(error) })),
    )
    void every(clock, PRUNE_MS, this.#closed.signal, () =>
      this.#prune().catch((error: unknown) => log.warn('old texts of calls could not be deleted', { error: errorText(error) })),
    )
  }

  close(): void {
    this.#closed.abort()
    for (const { session } of this.#live.values()) session?.end()
  }

  /** Takes the messages of media streams until `signal` aborts. */
  listen(deliver: Deliver, signal: AbortSignal): Promise<void> {
    this.#deliver = deliver
    return new Promise((resolve) => {
      const end = (): void => {
        if (this.#deliver === deliver) this.#deliver = undefined
        resolve()
      }
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
  }

  /** Answers a request of the provider whose message, if it had one, is stored. */
  async answer(raw: Raw): Promise<Response | undefined> {
    const { provider } = this.#options
    const event = provider.requests.event(raw)
    if (event.kind === 'other') return undefined
    if (event.kind === 'ended') {
      await this.#ended(event.call)
      return undefined
    }
    // A request that comes late or is replayed begins no call.
    if (!this.#live.has(event.call) && (await this.#options.keyValue.get(`ended/${event.call}`)) !== undefined) return undefined
    const instruction = await this.#next(event)
    const call = this.#live.get(event.call)
    if (call && !call.session) this.#expect(call, instruction)
    using limit = signalScope([this.#closed.signal], REQUEST_MS)
    return await provider.answer(event, instruction, limit.signal)
  }

  /** Implements `Channel.send`: speaks in the call that the address names, or in the call with this number. */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const { keyValue, provider, clock } = this.#options
    const call = this.#callOf(to)
    // The platform knows whether a call goes on that this process has not seen yet.
    const parties = call?.parties ?? this.#partiesOf(to)
    if (!parties) throw new AppError('invalid_request', 'There is no call in which the reply could be spoken')
    if (call?.session) await call.session.say(message.text, signal)
    else {
      // The provider fetches the text, perhaps after a restart of the daemon.
      await keyValue.set(`say/${message.clientId}`, { text: message.text, call: parties.call, atMs: clock.nowMs() })
      await provider.say(parties, message.text, message.clientId, signal)
    }
    return { id: `${parties.call}/${message.clientId}` }
  }

  /** Places a call that begins with this text. Throws `forbidden` and `rate_limited` for the limits, else as `Channel.send` does. */
  async dial(number: string, text: string, signal: AbortSignal): Promise<string> {
    const { config, keyValue, provider, clock, newToken } = this.#options
    await this.checkDial(number)
    const token = newToken()
    await keyValue.set(`dial/${token}`, { text, to: number, atMs: clock.nowMs() })
    await provider.dial({ to: number, token, ringSecs: config.ring_secs, secsMax: config.max_call_duration_secs }, signal)
    return token
  }

  /** Throws what `dial` would throw for a limit at this moment. */
  async checkDial(number: string): Promise<void> {
    const reason = await this.#refusal({ remote: number })
    if (reason === 'forbidden') throw new AppError('forbidden', `${number} is not in channels_config.voice_call.allowed_numbers`)
    if (reason) throw new AppError('rate_limited', `No call can be placed now: ${reason}`)
  }

  /**
   * Takes over the media stream of the call that the token of its path names. Throws `forbidden` for another token, and for one that was
   * used: a path that was read in the log of a proxy opens nothing.
   */
  openStream(token: string): (socket: FeatureSocket) => SocketListener {
    const { config, log, provider, audio } = this.#options
    const found = [...this.#live.values()].find(({ parties, streams }) => equalTexts(this.#streamToken(parties.call, streams), token))
    const parts = audio()
    if (!found || !parts || !this.#isAllowed(found.parties)) throw new AppError('forbidden', 'There is no such call')
    const { parties } = found
    found.streams++
    void this.#store(found).catch((error: unknown) =>
      log.warn('the media stream of a call could not be stored', { call: parties.call, error: errorText(error) }),
    )
    return (socket) =>
      new MediaSession(socket, {
        ...parts,
        call: parties.call,
        codec: provider.stream,
        log,
        threshold: config.energy_threshold,
        silenceMs: config.pause_ms,
        msMax: UTTERANCE_MS_MAX,
        onStart: (session) => void this.#connected(found, session),
        onText: (words) => this.#said(found, words),
        onActivity: () => {
          found.activeAtMs = this.#nowMs()
        },
        onEnd: (session) => {
          if (found.session !== session) return
          delete found.session
          found.expectedByMs = this.#nowMs() + (provider.asksAgain ? CONNECT_MS : HANGUP_REPORT_MS)
        },
      })
  }

  async #next(event: Exclude<CallEvent, { kind: 'other' | 'ended' }>): Promise<Instruction> {
    const { config } = this.#options
    if (this.#live.has(event.call) && !this.#isAllowed(event)) return { do: 'hangUp' }
    if (event.kind === 'ringing' || event.kind === 'started') {
      const isKnown = this.#live.has(event.call)
      const reason = isKnown ? undefined : await this.#refusal(event)
      if (reason) return this.#refuse(event, reason)
      if (event.kind === 'ringing') return { do: 'accept' }
      const live = this.#live.get(event.call) ?? (await this.#begin(event))
      // A provider that does not ask again has repeated its report.
      if (live.session && !this.#options.provider.asksAgain) return { do: 'wait' }
      return this.#talk(live)
    }
    const call = this.#live.get(event.call) ?? (await this.#resume(event))
    if (!call || call.endingAtMs !== undefined) return { do: 'hangUp', text: config.goodbye }
    switch (event.kind) {
      case 'silent':
        if (event.times > SILENCES_MAX) return { do: 'hangUp', text: config.goodbye }
        return { do: 'talk', text: config.silence_prompt, silences: event.times }
      case 'fetching':
        return this.#fetched(event.token, event.call)
      default:
        return { do: 'wait' }
    }
  }

  /** Only an incoming call that is not answered can be rejected. Any other would go on. */
  #refuse({ kind, direction }: CallEvent & { readonly kind: 'ringing' | 'started' }, reason: string): Instruction {
    const isAnswered = kind === 'started' && !this.#options.provider.asksAgain
    if (isAnswered || direction === 'outbound') return { do: 'hangUp' }
    return { do: 'reject', reason: reason === 'forbidden' ? 'forbidden' : 'busy' }
  }

  async #talk(live: LiveCall): Promise<Instruction> {
    const { config, audio, log } = this.#options
    const { call } = live.parties
    const { streams } = live
    if (config.audio === 'stream') {
      // The first words are spoken once the stream is connected.
      if (audio())
        return { do: 'stream', url: `${config.webhook_base_url.replace(/^http/, 'ws')}${STREAM_PATH}/${this.#streamToken(call, streams)}` }
      log.warn('the provider speaks and recognises in this call: a media stream needs [transcription] and [speech]', { call })
    }
    const text = await this.#firstWords(live)
    return { do: 'talk', ...(text !== undefined && { text }), silences: 0 }
  }

  /** Returns the words that a call begins with, once; undefined in a call that goes on. */
  async #firstWords(call: LiveCall): Promise<string | undefined> {
    const { firstWords } = call
    if (firstWords === undefined) return undefined
    delete call.firstWords
    await this.#store(call)
    return firstWords
  }

  /** The text stays, because the provider may fetch it again. */
  async #fetched(token: string, call: string): Promise<Instruction> {
    const kept = await this.#options.keyValue.get(`say/${token}`)
    return textAt(kept, 'call') === call ? { do: 'talk', text: textAt(kept, 'text'), silences: 0 } : { do: 'wait' }
  }

  /** Why a call may not begin: `forbidden` for a number that is not allowed, otherwise the limit that is reached. */
  async #refusal({ remote }: Pick<Parties, 'remote'>): Promise<string | undefined> {
    const { config, log } = this.#options
    if (!this.#isAllowed({ remote })) {
      log.info('a call was refused: the number is not on the allowlist', { number: remote })
      return 'forbidden'
    }
    const limit = this.#live.size >= config.max_calls ? 'max_calls' : await this.#usage.reached(this.#runningSecs(), this.#nowMs())
    if (limit) log.warn('a call was refused: a limit is reached', { limit })
    return limit && `channels_config.voice_call.${limit} is reached`
  }

  #isAllowed = ({ remote }: Pick<Parties, 'remote'>): boolean => isAllowed(this.#options.config.allowed_numbers, remote, callerOf)

  /** Notes until when the provider must be heard of again. */
  #expect(call: LiveCall, instruction: Instruction): void {
    const nowMs = this.#nowMs()
    if (instruction.do === 'stream') call.expectedByMs = nowMs + CONNECT_MS
    else if (this.#options.provider.asksAgain) {
      const text = instruction.do === 'talk' ? (instruction.text ?? '') : ''
      call.expectedByMs = nowMs + QUIET_MS + text.length * SPOKEN_MS_PER_CHAR
    } else delete call.expectedByMs
  }

  async #begin({ call, remote, local, direction, token }: CallEvent & { readonly kind: 'started' }): Promise<LiveCall> {
    const { config, keyValue, log } = this.#options
    const dialled = token === undefined ? undefined : await keyValue.get(`dial/${token}`)
    const live = this.#remember({ call, remote, local, direction }, this.#nowMs())
    live.firstWords = textAt(dialled, 'text') || config.greeting
    await this.#store(live)
    log.info('a call began', { call, direction })
    return live
  }

  /** Takes on a call that the provider has and this process does not know. */
  async #resume({ call, remote, local, direction }: Parties): Promise<LiveCall | undefined> {
    if (await this.#refusal({ remote })) return undefined
    const live = this.#remember({ call, remote, local, direction }, this.#nowMs())
    await this.#store(live)
    return live
  }

  #remember(parties: Parties, startedAtMs: number): LiveCall {
    const live: LiveCall = { parties, startedAtMs, activeAtMs: this.#nowMs(), silences: 0, utterances: 0, streams: 0 }
    this.#live.set(parties.call, live)
    return live
  }

  async #store({ parties: { call, ...about }, startedAtMs, streams, firstWords }: LiveCall): Promise<void> {
    await this.#options.keyValue.set(`call/${call}`, { ...about, startedAtMs, streams, ...(firstWords !== undefined && { firstWords }) })
  }

  async #connected(call: LiveCall, session: MediaSession): Promise<void> {
    call.session?.end()
    call.session = session
    delete call.expectedByMs
    delete call.isReconnecting
    try {
      const words = await this.#firstWords(call)
      if (words !== undefined) await session.say(words, this.#closed.signal)
    } catch (error) {
      this.#options.log.warn('the first words of a call could not be spoken', { call: call.parties.call, error: errorText(error) })
    }
  }

  /** Something was said on the media stream of a call. */
  async #said(call: LiveCall, words: string): Promise<void> {
    const { call: id, remote, local } = call.parties
    call.silences = 0
    call.utterances++
    const inbound = {
      id: `${id}/${this.#nowMs()}-${call.utterances}`,
      account: local,
      sender: callerOf(remote),
      to: { to: callerOf(remote), more: { call: id } },
      addressed: 'direct' as const,
      text: words,
      sentAtMs: this.#nowMs(),
    }
    const deliver: Deliver = async (message) => {
      if (!this.#deliver) throw new AppError('unavailable', 'The daemon takes no messages now')
      return this.#deliver(message)
    }
    await storePatiently(this.#options, { channel: 'voice_call', inbound, deliver, signal: this.#closed.signal })
  }

  #callOf({ to, more }: Address): LiveCall | undefined {
    if (more?.call !== undefined) return this.#live.get(more.call)
    return [...this.#live.values()].findLast(({ parties }) => callerOf(parties.remote) === to)
  }

  #partiesOf({ to, more }: Address): Parties | undefined {
    const local = this.#options.config.from_number
    return more?.call === undefined ? undefined : { call: more.call, remote: to, local, direction: 'inbound' }
  }

  async #ended(id: string): Promise<void> {
    const { keyValue, log } = this.#options
    const call = this.#live.get(id)
    if (!call) return
    this.#live.delete(id)
    call.session?.end()
    const seconds = Math.round((this.#nowMs() - call.startedAtMs) / 1000)
    await this.#usage.add(seconds, this.#nowMs())
    await keyValue.set(`ended/${id}`, { atMs: this.#nowMs() })
    await keyValue.delete(`call/${id}`)
    log.info('a call ended', { call: id, direction: call.parties.direction, seconds })
  }

  /** Ends calls that are too long, calls beyond the limits of the day, and calls whose caller stays silent. */
  async #enforce(): Promise<void> {
    if (this.#live.size === 0) return
    const { config } = this.#options
    const nowMs = this.#nowMs()
    const limit = await this.#usage.reached(this.#runningSecs(), nowMs)
    for (const call of this.#live.values()) {
      if (limit || nowMs - call.startedAtMs >= config.max_call_duration_secs * 1000)
        await this.#end(call, limit ?? 'max_call_duration_secs')
      else if (!this.#isAllowed(call.parties)) await this.#end(call, 'the number is no longer on the allowlist')
      else if (call.expectedByMs !== undefined && nowMs >= call.expectedByMs) await this.#reconnect(call)
      else if (call.session && !call.session.isBusy && nowMs - call.activeAtMs >= config.silence_secs * 1000) await this.#prompt(call)
    }
  }

  /** Asks a provider that does not ask again for the media stream once more; ends the call if it was asked, or did not ask. */
  async #reconnect(call: LiveCall): Promise<void> {
    const { config, log, provider } = this.#options
    if (provider.asksAgain || config.audio !== 'stream' || call.isReconnecting) return this.#end(call, 'the provider was not heard of')
    call.isReconnecting = true
    call.expectedByMs = this.#nowMs() + CONNECT_MS
    using limit = signalScope([this.#closed.signal], REQUEST_MS)
    await provider.answer(call.parties, await this.#talk(call), limit.signal).catch((error: unknown) => {
      log.warn('the media stream of a call could not be connected again', { call: call.parties.call, error: errorText(error) })
      call.expectedByMs = this.#nowMs()
    })
  }

  async #prompt(call: LiveCall): Promise<void> {
    const { config } = this.#options
    call.activeAtMs = this.#nowMs()
    call.silences++
    if (call.silences > SILENCES_MAX) return this.#end(call, 'silence')
    await call.session?.say(config.silence_prompt, this.#closed.signal).catch(() => undefined)
  }

  async #end(call: LiveCall, why: string): Promise<void> {
    const { log, provider } = this.#options
    const { call: id } = call.parties
    const nowMs = this.#nowMs()
    if (call.endingAtMs !== undefined && nowMs - call.endingAtMs < REQUEST_MS) return
    log.info('a call is being ended', { call: id, why })
    call.endingAtMs = nowMs
    using limit = signalScope([this.#closed.signal], REQUEST_MS)
    await provider.hangUp(id, limit.signal).then(
      () => this.#ended(id),
      (error: unknown) => {
        // The provider no longer has the call.
        if (error instanceof AppError && error.code === 'invalid_request') return this.#ended(id)
        return log.warn('a call could not be ended', { call: id, error: errorText(error) })
      },
    )
  }

  async #prune(): Promise<void> {
    const { keyValue } = this.#options
    const nowMs = this.#nowMs()
    await this.#usage.prune(nowMs)
    for (const prefix of ['say/', 'dial/', 'ended/'])
      for (const { key, value } of await keyValue.list(prefix, KEPT_MAX)) if (nowMs - atMsIn(value) > KEPT_MS) await keyValue.delete(key)
  }

  /** The token is for one stream: it changes once the stream is connected. It is the same for a provider that asks twice before that. */
  #streamToken = (call: string, streams: number): string =>
    hmacSha256(this.#options.config.auth_token.reveal(), `media stream ${streams} of `, call).toString('base64url')

  #runningSecs(): number {
    const nowMs = this.#nowMs()
    return [...this.#live.values()].reduce((sum, { startedAtMs }) => sum + (nowMs - startedAtMs) / 1000, 0)
  }

  #nowMs(): number {
    return this.#options.clock.nowMs()
  }
}

function partiesIn(call: string, stored: unknown): Parties | undefined {
  const { remote, local, direction } = members(stored)
  if (text(remote) === '' || text(local) === '') return undefined
  return { call, remote: text(remote), local: text(local), direction: direction === 'outbound' ? 'outbound' : 'inbound' }
}

const atMsIn = (stored: unknown): number => {
  const { atMs } = members(stored)
  return typeof atMs === 'number' ? atMs : 0
}
