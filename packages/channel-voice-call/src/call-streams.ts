/** The media streams of calls: the check of each caller, the greeting, and the words in both directions. */
import { storePatiently } from '@sluice/kit'
import { AppError, type Deliver, equalTexts, errorText, type FeatureSocket, hmacSha256, type SocketListener } from '@sluice/sdk'
import type { CallsOptions } from './calls-options.ts'
import type { LiveCall, LiveCalls } from './live-calls.ts'
import { MediaSession } from './media-session.ts'
import { callerOf, type Parties, STREAM_PATH } from './telephony.ts'

/** The provider connects a media stream, or connects it again, within this time. */
export const CONNECT_MS = 30_000
/** After the end of a media stream, the provider reports the end of its call within this time, if the call has ended. */
const HANGUP_REPORT_MS = 3000
/** A longer utterance is recognised in parts. */
const UTTERANCE_MS_MAX = 60_000

export interface CallStreamsOptions extends CallsOptions {
  readonly live: LiveCalls
  readonly isAllowed: (parties: Pick<Parties, 'remote'>) => boolean
  /** Returns what takes messages now. */
  readonly deliver: () => Deliver | undefined
  /** Aborts when the daemon stops. */
  readonly closed: AbortSignal
}

export class CallStreams {
  readonly #options: CallStreamsOptions

  constructor(options: CallStreamsOptions) {
    this.#options = options
  }

  /** Returns the address at which the provider connects the next media stream of a call. */
  url({ parties: { call }, streams }: LiveCall): string {
    const { webhook_base_url } = this.#options.config
    return `${webhook_base_url.replace(/^http/, 'ws')}${STREAM_PATH}/${this.#tokenOf(call, streams)}`
  }

  /**
   * Takes over the media stream of the call that the token of its path names. Throws `forbidden` for another token, and for one that was
   * used: a path that was read in the log of a proxy opens nothing.
   */
  open(token: string): (socket: FeatureSocket) => SocketListener {
    const { config, log, provider, audio, live, isAllowed } = this.#options
    const found = live.all().find(({ parties, streams }) => equalTexts(this.#tokenOf(parties.call, streams), token))
    const parts = audio()
    if (!found || !parts || !isAllowed(found.parties)) throw new AppError('forbidden', 'There is no such call')
    const { parties } = found
    found.streams++
    void live
      .store(found)
      .catch((error: unknown) =>
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
        notUnderstood: config.not_understood.trim(),
        onStart: (session) => void this.#connected(found, session),
        onText: (words) => this.#said(found, words),
        onActivity: () => {
          found.activeAtMs = this.#options.clock.nowMs()
        },
        onEnd: (session) => {
          if (found.session !== session) return
          delete found.session
          found.expectedByMs = this.#options.clock.nowMs() + (provider.asksAgain ? CONNECT_MS : HANGUP_REPORT_MS)
        },
      })
  }

  async #connected(call: LiveCall, session: MediaSession): Promise<void> {
    call.session?.end()
    call.session = session
    delete call.expectedByMs
    delete call.isReconnecting
    try {
      const words = await this.#options.live.firstWords(call)
      if (words !== undefined) await session.say(words, this.#options.closed)
    } catch (error) {
      this.#options.log.warn('the first words of a call could not be spoken', { call: call.parties.call, error: errorText(error) })
    }
  }

  /** Something was said on the media stream of a call. */
  async #said(call: LiveCall, words: string): Promise<void> {
    const { call: id, remote, local } = call.parties
    const nowMs = this.#options.clock.nowMs()
    call.silences = 0
    call.utterances++
    const inbound = {
      id: `${id}/${nowMs}-${call.utterances}`,
      account: local,
      sender: callerOf(remote),
      to: { to: callerOf(remote), more: { call: id } },
      addressed: 'direct' as const,
      text: words,
      sentAtMs: nowMs,
    }
    const deliver: Deliver = async (message) => {
      const take = this.#options.deliver()
      if (!take) throw new AppError('unavailable', 'The daemon takes no messages now')
      return take(message)
    }
    await storePatiently(this.#options, { channel: 'voice_call', inbound, deliver, signal: this.#options.closed })
  }

  /** The token is for one stream: it changes once the stream is connected. It is the same for a provider that asks twice before that. */
  #tokenOf = (call: string, streams: number): string =>
    hmacSha256(this.#options.config.auth_token.reveal(), `media stream ${streams} of `, call).toString('base64url')
}
