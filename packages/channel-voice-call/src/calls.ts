/** The calls that go on: who may call, what each request of the provider is answered, and when a call ends. */
import { signalScope } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import {
  type Address,
  AppError,
  type Deliver,
  type FeatureSocket,
  isAllowed,
  type Outbound,
  type Raw,
  type Sent,
  type SocketListener,
} from '@sluice/sdk'
import { CallStreams, CONNECT_MS } from './call-streams.ts'
import { CallWatch, REQUEST_MS, SILENCES_MAX } from './call-watch.ts'
import type { CallsOptions } from './calls-options.ts'
import { type LiveCall, LiveCalls } from './live-calls.ts'
import { type CallEvent, callerOf, type Instruction, type Parties } from './telephony.ts'
import { Usage } from './usage.ts'

/**
 * A provider that asks again and again has ended a call for which it does not ask for this time, and for the time of the last text: it
 * reports the end of a call only if the operator has set the URL for that.
 */
const QUIET_MS = 180_000
const SPOKEN_MS_PER_CHAR = 100

export class Calls {
  readonly #options: CallsOptions
  readonly #usage: Usage
  readonly #live: LiveCalls
  readonly #streams: CallStreams
  readonly #watch: CallWatch
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
    const closed = this.#closed.signal
    this.#live = new LiveCalls(options)
    const parts = { ...options, live: this.#live, isAllowed: this.#isAllowed, closed }
    this.#streams = new CallStreams({ ...parts, deliver: () => this.#deliver })
    this.#watch = new CallWatch({ ...parts, usage: this.#usage, talk: (call) => this.#talk(call) })
  }

  /** Reads the calls that went on when the daemon ended, and begins to watch their limits. */
  async open(): Promise<void> {
    const { config, provider } = this.#options
    for (const call of await this.#live.restore()) {
      if (provider.asksAgain) call.expectedByMs = this.#nowMs() + QUIET_MS
      else if (config.audio === 'stream') call.expectedByMs = this.#nowMs()
    }
    await this.#watch.open()
  }

  close(): void {
    this.#closed.abort()
    for (const { session } of this.#live.all()) session?.end()
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
      await this.#watch.ended(event.call)
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
    const call = this.#live.at(to)
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

  /** See `CallStreams.open`. */
  openStream(token: string): (socket: FeatureSocket) => SocketListener {
    return this.#streams.open(token)
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
    if (config.audio === 'stream') {
      // The first words are spoken once the stream is connected.
      if (audio()) return { do: 'stream', url: this.#streams.url(live) }
      log.warn('the provider speaks and recognises in this call: a media stream needs [transcription] and [speech]', { call })
    }
    const text = await this.#live.firstWords(live)
    return { do: 'talk', ...(text !== undefined && { text }), silences: 0 }
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
    const limit = this.#live.size >= config.max_calls ? 'max_calls' : await this.#usage.reached(this.#live.runningSecs(), this.#nowMs())
    if (limit) log.warn('a call was refused: a limit is reached', { limit })
    return limit && `channels_config.voice_call.${limit} is reached`
  }

  #isAllowed = ({ remote }: Pick<Parties, 'remote'>): boolean => isAllowed(this.#options.config.allowed_numbers, remote, callerOf)

  /** Notes until when the provider must report again. */
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
    const live = this.#live.add({ call, remote, local, direction }, this.#nowMs())
    live.firstWords = textAt(dialled, 'text') || config.greeting
    await this.#live.store(live)
    log.info('a call began', { call, direction })
    return live
  }

  /** Takes on a call that the provider has and this process does not know. */
  async #resume({ call, remote, local, direction }: Parties): Promise<LiveCall | undefined> {
    if (await this.#refusal({ remote })) return undefined
    const live = this.#live.add({ call, remote, local, direction }, this.#nowMs())
    await this.#live.store(live)
    return live
  }

  #partiesOf({ to, more }: Address): Parties | undefined {
    const local = this.#options.config.from_number
    return more?.call === undefined ? undefined : { call: more.call, remote: to, local, direction: 'inbound' }
  }

  #nowMs(): number {
    return this.#options.clock.nowMs()
  }
}
