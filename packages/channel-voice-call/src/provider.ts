/** A telephony provider as the calls use it: how it is answered and what it can be asked to do. */
import type { Secret } from '@sluice/sdk'
import type { Dial, Instruction, Parties, Requests, StreamCodec } from './telephony.ts'

export interface Provider {
  readonly name: string
  readonly requests: Requests
  readonly stream: StreamCodec
  /** True if the provider asks for instructions again and again while a call goes on, and perhaps does not report its end. */
  readonly asksAgain: boolean
  /**
   * Answers a request of the provider about a call with an instruction: in the answer, or by a command and the usual answer. Throws
   * `unavailable` if the command failed and the provider should repeat its request.
   */
  answer(parties: Parties, instruction: Instruction, signal: AbortSignal): Promise<Response | undefined>
  /**
   * Speaks a text outside of a request of the provider, and then listens. `token` is under which the text was left for a provider
   * that fetches it. Throws as `Channel.send` does.
   */
  say(parties: Parties, text: string, token: string, signal: AbortSignal): Promise<void>
  /** Throws as `Channel.send` does. */
  hangUp(call: string, signal: AbortSignal): Promise<void>
  /** Places a call. Throws as `Channel.send` does. */
  dial(dial: Dial, signal: AbortSignal): Promise<void>
}

export interface ProviderOptions {
  readonly fetch: typeof fetch
  readonly apiUrl: string
  /** The public URL of this daemon without a path. */
  readonly baseUrl: string
  readonly accountId: string
  readonly authToken: Secret
  /** Our number, in E.164. */
  readonly from: string
  /** The application whose calls Telnyx places. */
  readonly connectionId: string
  readonly voice?: string
  readonly language: string
  readonly silenceSecs: number
  nowMs(): number
}
